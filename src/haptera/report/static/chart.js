// chart.js: from a frame and its encoding to what plotly draws; nothing here knows where the frame came from.

const ERROR_POINTS = 80;
const CELL_LABELS = 400;
const LABEL_LENGTH = 30;
const TICK_LENGTH = 6; // characters of a number that is a tick of its own

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

function axes(frame, encoding, rows, width, fitted) {
  const label = (name) => plain(encoding.labels[name] ?? name);
  const layout = baseLayout(encoding, width);
  layout.xaxis.title.text = label(encoding.x);
  layout.yaxis.title.text = encoding.quantity && rows.length ? plain(frame.column(encoding.quantity).shown(rows[0])) : label(encoding.y);
  layout.yaxis.range = vertical(frame, encoding, rows, fitted);
  if (encoding.log_y) {
    const { range } = layout.yaxis;
    Object.assign(layout.yaxis, { type: 'log' }, range ? logTicks(range.map((power) => 10 ** power)) : {});
  }
  if (encoding.time_x) {
    layout.xaxis.type = 'date';
    return layout;
  }
  if (frame.column(encoding.x).isText) { // also where the names look like numbers, as those of units do
    Object.assign(layout.xaxis, { type: 'category', categoryorder: 'array', categoryarray: frame.present(rows, encoding.x) });
    return layout;
  }
  const levels = frame.present(rows, encoding.x).map(Number).sort((a, b) => a - b);
  if (encoding.log_x) Object.assign(layout.xaxis, { type: 'log' }, logTicks(levels));
  else if (encoding.diagonal) layout.xaxis.range = [0, 1.02];
  else if (levels.length <= 12 && levels.every((level) => String(level).length <= TICK_LENGTH)) Object.assign(layout.xaxis, { tickmode: 'array', tickvals: levels });
  return layout;
}

// The range of y: that of the encoding, or that of the data with a little room; undefined where plotly may choose; of its logarithm where y has one.
function vertical(frame, encoding, rows, fitted) {
  if (encoding.limits && !fitted) return [encoding.limits[0], encoding.limits[1] + 0.02 * (encoding.limits[1] - encoding.limits[0])];
  // Bars of points are drawn for all of them, bands of lines for few.
  const whole = !encoding.limits || encoding.kind === 'scatter';
  const names = whole ? [encoding.y, encoding.low, encoding.high].filter(Boolean) : [encoding.y];
  let [least, most] = [Infinity, -Infinity];
  const scaled = encoding.log_y ? logarithm : (value) => value;
  for (const name of names) {
    for (const row of rows) {
      const value = scaled(frame.column(name).at(row));
      if (value !== null) [least, most] = [Math.min(least, value), Math.max(most, value)];
    }
  }
  if (least > most) return undefined;
  const room = 0.05 * (most - least || 1);
  return [least - room, most + room];
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
    const rounded = number.toFixed(2);
    labels[i][j] = Number(rounded) === 0 ? '0.00' : (diverging && number > 0 ? '+' : '') + rounded.replace('-', '−');
    [least, most, largest] = [Math.min(least, number), Math.max(most, number), Math.max(largest, Math.abs(number))];
  }
  const layout = baseLayout(encoding, width);
  const ticks = (names, length) => ({ tickmode: 'array', tickvals: names.map((_, at) => at), ticktext: names.map((name) => plain(shortened(name, length))), showgrid: false });
  const level = Math.floor((width - 220) / (7.5 * across.length));
  const letters = width < 600 ? 16 : Math.max(22, Math.min(level, 60)); // whole names where few columns leave them room
  const longest = Math.min(letters, Math.max(...across.map((name) => String(name).length)));
  const tickangle = width < 600 ? -90 : 7.5 * longest * across.length > width - 220 ? -45 : 0; // level where names have room
  Object.assign(layout.xaxis, ticks(across, letters), { side: 'top', tickangle, range: [-0.5, across.length - 0.5] });
  const beside = width < 600 ? 16 : LABEL_LENGTH;
  Object.assign(layout.yaxis, ticks(down, beside), { range: [down.length - 0.5, -0.5] });
  layout.dragmode = false;
  const names = tickangle ? Math.ceil(7 * longest * Math.sin((-tickangle * Math.PI) / 180)) + 16 : 0;
  layout.height = Math.max(96 + 24 * down.length + (tickangle ? 40 : 0), 80 + names); // plotly keeps 64 for the cells, and cuts names
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
  const room = 7 * Math.min(beside, Math.max(...down.map((name) => String(name).length))) + (traces[0].showscale ? 80 : 24);
  if (labelled) traces.push(cellLabels(z, labels, scale, zmin, zmax));
  return { traces, layout, legend: [], note: '', least: room + 42 * across.length };
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

const CHARTS = { line: lineChart, scatter: scatterChart, heatmap: heatmapChart, table: tableChart };
