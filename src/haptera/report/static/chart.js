// chart.js: from a frame and its encoding to what plotly draws; nothing here knows where the frame came from.

const BAND_LINES = 10;
const MOST_LINES = 200;
const MARKER_POINTS = 60;
const ERROR_POINTS = 80;
const CELL_LABELS = 400;
const LABEL_LENGTH = 30;
const SHADED_RUNS = 60;

// plotly reads a little markup in text; a name must stay a name.
const plain = (text) => String(text).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const shortened = (text, most = LABEL_LENGTH) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// Each value that is shown keeps its colour while it is shown; the next one takes the first that is free.
class Slots {
  constructor(kept) {
    this.kept = kept;
    this.taken = new Map(kept.map((name, slot) => [name, slot]));
  }

  assign(names) {
    const wanted = new Set([...names, ...this.kept]);
    for (const name of [...this.taken.keys()]) if (!wanted.has(name)) this.taken.delete(name);
    const used = new Set(this.taken.values());
    let slot = 0;
    for (const name of names) {
      if (this.taken.has(name)) continue;
      while (used.has(slot)) slot += 1;
      this.taken.set(name, slot);
      used.add(slot);
    }
    return this.taken;
  }
}

// What a reader sees when pointing at a row: every column that is not already fixed by a dropdown.
function hoverText(frame, encoding, row, value) {
  const label = (name) => encoding.labels[name] ?? name;
  const lines = [];
  for (const column of frame.columns) {
    const { name } = column;
    if (encoding.select.includes(name) || name === encoding.low || name === encoding.high) continue;
    if (name === encoding.flags && column.at(row) === null) continue;
    let text = column.shown(row);
    if (name === value && encoding.low && frame.column(encoding.low).at(row) !== null) {
      text += ` (${frame.column(encoding.low).shown(row)} to ${frame.column(encoding.high).shown(row)})`;
    }
    lines.push(`${plain(label(name))}: <b>${plain(shortened(text, 60))}</b>`);
  }
  return lines.join('<br>');
}

function baseLayout(encoding, width) {
  const ink = Theme.color('ink');
  const font = { family: getComputedStyle(document.body).fontFamily, size: 12.5, color: ink };
  const axis = {
    gridcolor: Theme.color('grid'), linecolor: Theme.color('rule'), zeroline: false, automargin: true, ticks: '',
    title: { font: { size: 13, color: Theme.color('soft') }, standoff: 12 }, tickfont: { color: Theme.color('soft') },
  };
  return {
    paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', showlegend: false, hovermode: 'closest',
    font,
    margin: { l: 54, r: 12, t: 12, b: 48 }, height: encoding.height, dragmode: width < 600 ? false : 'zoom',
    hoverlabel: { bgcolor: Theme.color('raised'), bordercolor: Theme.color('rule'), font, align: 'left' },
    xaxis: structuredClone(axis), yaxis: structuredClone(axis),
  };
}

// Rows by colour and dash, in the order of the frame.
function groups(frame, encoding, rows) {
  const by = [...encoding.color, ...(encoding.dash ? [encoding.dash] : [])].map((name) => frame.column(name));
  const found = new Map();
  for (const row of rows) {
    const key = by.map((column) => column.levels.codes[row]).join('|');
    if (!found.has(key)) {
      found.set(key, {
        color: encoding.color.map((name) => frame.column(name).shown(row)).join(' · '),
        dash: encoding.dash ? frame.column(encoding.dash).shown(row) : null,
        rows: [],
      });
    }
    found.get(key).rows.push(row);
  }
  return [...found.values()];
}

function styles(lines, slots) {
  const palette = Theme.palette();
  const names = [...new Set(lines.map((line) => line.color))];
  const colors = slots.assign(names);
  const dashes = [...new Set(lines.map((line) => line.dash).filter((name) => name !== null))];
  return {
    color: (line) => palette[colors.get(line.color) % palette.length],
    symbol: (line) => Math.floor(colors.get(line.color) / palette.length),
    dash: (line) => Math.max(dashes.indexOf(line.dash), 0),
    legend: [
      names.map((name) => ({ name, color: palette[colors.get(name) % palette.length], symbol: Math.floor(colors.get(name) / palette.length) })),
      dashes.length > 1 ? dashes.map((name, place) => ({ name, dash: place })) : [],
    ],
  };
}

function lineChart(frame, encoding, rows, slots, width) {
  const x = frame.column(encoding.x);
  const y = frame.column(encoding.y);
  const drawn = rows.filter((row) => x.at(row) !== null && y.at(row) !== null);
  const every = groups(frame, encoding, drawn);
  const lines = every.slice(0, MOST_LINES);
  const style = styles(lines, slots);
  const banded = encoding.low && encoding.high && lines.length <= BAND_LINES;
  const traces = [];
  for (const line of lines) {
    line.rows.sort((a, b) => x.at(a) - x.at(b));
    const color = style.color(line);
    if (banded) {
      const inside = line.rows.filter((row) => frame.column(encoding.low).at(row) !== null);
      const back = [...inside].reverse();
      traces.push({
        type: 'scatter', mode: 'lines', fill: 'toself', fillcolor: color, opacity: 0.14, line: { width: 0 }, hoverinfo: 'skip',
        x: [...inside, ...back].map((row) => x.at(row)),
        y: [...inside.map((row) => frame.column(encoding.high).at(row)), ...back.map((row) => frame.column(encoding.low).at(row))],
      });
    }
  }
  for (const line of lines) {
    const color = style.color(line);
    traces.push({
      type: 'scatter', mode: line.rows.length <= MARKER_POINTS ? 'lines+markers' : 'lines',
      name: plain([line.color, line.dash].filter(Boolean).join(' · ')),
      x: line.rows.map((row) => x.at(row)), y: line.rows.map((row) => y.at(row)),
      line: { color, width: 2, dash: DASHES[style.dash(line) % DASHES.length] },
      marker: { color, size: line.rows.length > 20 ? 4 : 6, symbol: SYMBOLS[style.symbol(line) % SYMBOLS.length] },
      text: line.rows.map((row) => hoverText(frame, encoding, row, encoding.y)), hovertemplate: '%{text}<extra></extra>',
    });
  }
  if (encoding.diagonal) {
    traces.unshift({ type: 'scatter', mode: 'lines', hoverinfo: 'skip', x: [0, 1], y: [0, 1], line: { color: Theme.color('soft'), width: 1, dash: 'dash' } });
  }
  if (encoding.flags) traces.push(...lines.map((line) => crosses(frame, encoding, line.rows, style.color(line))));
  const layout = axes(frame, encoding, drawn, width);
  if (encoding.bands) Object.assign(layout, shading(frame, encoding, drawn, width));
  const cut = every.length > lines.length ? `only the first ${MOST_LINES} of ${every.length} lines are drawn` : '';
  return { traces, layout, legend: style.legend, note: cut };
}

// What happened at points of a line.
function crosses(frame, encoding, rows, color) {
  const flagged = rows.filter((row) => frame.column(encoding.flags).at(row) !== null);
  return {
    type: 'scatter', mode: 'markers', name: 'flag', x: flagged.map((row) => frame.column(encoding.x).at(row)), y: flagged.map((row) => frame.column(encoding.y).at(row)),
    marker: { color, size: 13, symbol: 'x', line: { color: Theme.color('paper'), width: 1.5 } },
    text: flagged.map((row) => hoverText(frame, encoding, row, encoding.y)), hovertemplate: '%{text}<extra></extra>',
  };
}

function scatterChart(frame, encoding, rows, slots, width) {
  const x = frame.column(encoding.x);
  const y = frame.column(encoding.y);
  const drawn = rows.filter((row) => x.at(row) !== null && y.at(row) !== null);
  const points = groups(frame, encoding, drawn);
  const style = styles(points, slots);
  const traces = points.map((group) => {
    const trace = {
      type: 'scatter', mode: 'markers', name: plain([group.color, group.dash].filter(Boolean).join(' · ')),
      x: group.rows.map((row) => x.at(row)), y: group.rows.map((row) => y.at(row)),
      marker: { color: style.color(group), size: 9, opacity: 0.85, symbol: SYMBOLS[(style.symbol(group) + style.dash(group)) % SYMBOLS.length] },
      text: group.rows.map((row) => hoverText(frame, encoding, row, encoding.y)), hovertemplate: '%{text}<extra></extra>',
    };
    if (encoding.low && encoding.high && drawn.length <= ERROR_POINTS) {
      const off = (name, sign) => group.rows.map((row) => {
        const end = frame.column(name).at(row);
        return end === null ? 0 : Math.max(sign * (end - y.at(row)), 0);
      });
      trace.error_y = { type: 'data', symmetric: false, array: off(encoding.high, 1), arrayminus: off(encoding.low, -1), thickness: 1, width: 0, color: style.color(group) };
    }
    return trace;
  });
  return { traces, layout: axes(frame, encoding, drawn, width), legend: style.legend, note: '' };
}

function axes(frame, encoding, rows, width) {
  const label = (name) => plain(encoding.labels[name] ?? name);
  const layout = baseLayout(encoding, width);
  layout.xaxis.title.text = label(encoding.x);
  layout.yaxis.title.text = label(encoding.y);
  if (encoding.limits) layout.yaxis.range = [encoding.limits[0], encoding.limits[1] + 0.02 * (encoding.limits[1] - encoding.limits[0])];
  if (frame.column(encoding.x).isText) { // also where the names look like numbers, as those of units do
    Object.assign(layout.xaxis, { type: 'category', categoryorder: 'array', categoryarray: frame.present(rows, encoding.x) });
    return layout;
  }
  const levels = frame.present(rows, encoding.x).map(Number).sort((a, b) => a - b);
  if (encoding.log_x) Object.assign(layout.xaxis, { type: 'log' }, logTicks(levels));
  else if (encoding.diagonal) layout.xaxis.range = [0, 1.02];
  else if (levels.length <= 12) Object.assign(layout.xaxis, { tickmode: 'array', tickvals: levels });
  return layout;
}

// 1, 2, 5, 10, ... around the data, or only powers of ten where it spans many of them.
function logTicks(levels) {
  const positive = levels.filter((level) => level > 0);
  if (!positive.length) return {};
  const [from, to] = [Math.floor(Math.log10(positive[0])), Math.ceil(Math.log10(positive.at(-1)))];
  const powers = Array.from({ length: to - from + 1 }, (_, place) => from + place);
  const tickvals = powers.flatMap((power) => (to - from > 4 ? [1] : [1, 2, 5]).map((digit) => Number(`${digit}e${power}`)));
  return { tickmode: 'array', tickvals, ticktext: tickvals.map(String) };
}

// The runs of a column along x, every other one shaded, named where there is room.
function shading(frame, encoding, rows, width) {
  const x = frame.column(encoding.x);
  const column = frame.column(encoding.bands);
  const along = Array.from(rows).sort((a, b) => x.at(a) - x.at(b));
  const runs = [];
  for (const row of along) {
    const name = column.shown(row);
    const last = runs.at(-1);
    if (last && last.name === name) last.end = x.at(row);
    else runs.push({ name, start: last ? last.end : x.at(row), end: x.at(row) });
  }
  if (runs.length < 2 || runs.length > SHADED_RUNS) return {};
  const span = runs.at(-1).end - runs[0].start || 1;
  const shapes = runs.filter((_, place) => place % 2 === 0).map((run) => ({
    type: 'rect', xref: 'x', yref: 'paper', x0: run.start, x1: run.end, y0: 0, y1: 1, layer: 'below', line: { width: 0 }, fillcolor: Theme.color('shade'),
  }));
  const pixels = (run) => ((run.end - run.start) / span) * (width - 80);
  const annotations = runs.filter((run) => pixels(run) > 7 * Math.min(run.name.length, 18)).map((run) => ({
    x: (run.start + run.end) / 2, y: 0, xref: 'x', yref: 'paper', yanchor: 'bottom', showarrow: false,
    text: plain(shortened(run.name, Math.max(18, Math.floor(pixels(run) / 7)))), font: { size: 11.5, color: Theme.color('soft') },
  }));
  return { shapes, annotations };
}

function heatmapChart(frame, encoding, rows, slots, width, value) {
  const cell = frame.column(value);
  const across = frame.present(rows, encoding.x);
  const down = frame.present(rows, encoding.y);
  const place = (names) => new Map(names.map((name, at) => [name, at]));
  const [columns, lines] = [place(across), place(down)];
  const blank = (fill) => down.map(() => across.map(() => fill));
  const [z, text, labels] = [blank(null), blank(''), blank('')];
  const diverging = encoding.diverging.includes(value);
  let [least, most, largest] = [Infinity, -Infinity, 0.05];
  for (const row of rows) {
    const [i, j] = [lines.get(frame.column(encoding.y).shown(row)), columns.get(frame.column(encoding.x).shown(row))];
    const number = cell.at(row);
    if (number === null) continue;
    z[i][j] = number;
    text[i][j] = hoverText(frame, encoding, row, encoding.value[0]);
    labels[i][j] = (diverging && number > 0 ? '+' : '') + number.toFixed(2).replace('-', '−');
    [least, most, largest] = [Math.min(least, number), Math.max(most, number), Math.max(largest, Math.abs(number))];
  }
  const layout = baseLayout(encoding, width);
  const ticks = (names, length) => ({ tickmode: 'array', tickvals: names.map((_, at) => at), ticktext: names.map((name) => plain(shortened(name, length))), showgrid: false });
  Object.assign(layout.xaxis, ticks(across, width < 600 ? 16 : 22), { side: 'top', tickangle: width < 600 ? -90 : across.length > 7 ? -45 : 0, range: [-0.5, across.length - 0.5] });
  Object.assign(layout.yaxis, ticks(down, width < 600 ? 16 : LABEL_LENGTH), { range: [down.length - 0.5, -0.5] });
  layout.dragmode = false;
  layout.height = 96 + 24 * down.length + (layout.xaxis.tickangle ? 40 : 0);
  layout.margin.b = 12;
  const scale = diverging
    ? [[0, Theme.color('below')], [0.5, Theme.color('level')], [1, Theme.color('above')]]
    : [[0, Theme.color('cold')], [0.5, Theme.color('mild')], [1, Theme.color('warm')]];
  const [zmin, zmax] = diverging ? [-largest, largest] : encoding.limits ?? (least < most ? [least, most] : [0, 1]);
  const labelled = down.length * across.length <= CELL_LABELS;
  const traces = [{
    type: 'heatmap', z, text, hovertemplate: '%{text}<extra></extra>', x: across.map((_, at) => at), y: down.map((_, at) => at),
    zmin, zmax, colorscale: scale, xgap: 2, ygap: 2, hoverongaps: false, showscale: !labelled || width >= 600,
    colorbar: { thickness: 10, outlinewidth: 0, tickfont: { color: Theme.color('soft') }, lenmode: 'pixels', len: Math.max(Math.min(layout.height - 90, 260), 90), yanchor: 'top', y: 1 },
  }];
  if (labelled) traces.push(cellLabels(z, labels, scale, zmin, zmax));
  return { traces, layout, legend: [], note: '', least: 150 + 46 * across.length };
}

// Numbers in the cells, each black or white, whichever is easier to read on its cell.
function cellLabels(z, labels, scale, zmin, zmax) {
  const cells = z.flatMap((line, i) => line.map((number, j) => ({ number, i, j }))).filter(({ number }) => number !== null);
  return {
    type: 'scatter', mode: 'text', hoverinfo: 'skip', x: cells.map(({ j }) => j), y: cells.map(({ i }) => i),
    text: cells.map(({ i, j }) => labels[i][j]),
    textfont: { size: 12, color: cells.map(({ number }) => readable(scale, (number - zmin) / (zmax - zmin))) },
  };
}

function readable(scale, share) {
  const at = Math.min(Math.max(share, 0), 1);
  const upper = Math.max(scale.findIndex(([stop]) => stop >= at), 1);
  const [[from, low], [to, high]] = [scale[upper - 1], scale[upper]];
  const part = (at - from) / (to - from);
  const channel = (color, place) => parseInt(color.slice(1 + 2 * place, 3 + 2 * place), 16);
  const linear = [0, 1, 2].map((place) => {
    const level = (channel(low, place) * (1 - part) + channel(high, place) * part) / 255;
    return level <= 0.04045 ? level / 12.92 : ((level + 0.055) / 1.055) ** 2.4;
  });
  const luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return luminance > 0.179 ? '#000000' : '#ffffff';
}

const CHARTS = { line: lineChart, scatter: scatterChart, heatmap: heatmapChart };
