// layers.js: points, lines, bands and cells over one another, on plain, logarithmic or probit axes.

const LAYERS = ['cell', 'band', 'line', 'point'];
const MANY_POINTS = 300;
const PROBIT_TICKS = [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999];

// Φ by the series of Abramowitz and Stegun, 26.2.17; its inverse by halving, which needs no table of its own.
function normal(z) {
  const t = 1 / (1 + 0.2316419 * Math.abs(z));
  const tail = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI)
    * t * (0.31938153 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  return z > 0 ? 1 - tail : tail;
}

function probit(share) {
  if (share === null || share <= 0 || share >= 1) return null;
  let [low, high] = [-6, 6];
  for (let turn = 0; turn < 45; turn += 1) {
    const middle = (low + high) / 2;
    if (normal(middle) < share) low = middle; else high = middle;
  }
  return (low + high) / 2;
}

const logarithm = (value) => (value > 0 ? Math.log10(value) : null);

// What a reader sees when pointing at a row: the columns that say something about it.
function layerText(frame, encoding, row) {
  const shown = frame.columns.filter(({ name }) => name !== encoding.mark && frame.column(name).at(row) !== null);
  return shown.map((column) => (
    `${plain(encoding.labels[column.name] ?? column.name)}: <b>${plain(shortened(column.shown(row), 60))}</b>`)).join('<br>');
}

function layersChart(frame, encoding, rows, slots, width) {
  const x = frame.column(encoding.x);
  const mark = frame.column(encoding.mark);
  const scaled = { probit, log: logarithm }[encoding.scale] ?? ((value) => value);
  const across = (row) => scaled(x.at(row));
  const up = (name) => (row) => scaled(frame.column(name).at(row));
  const kinds = new Map(LAYERS.map((kind) => [kind, []]));
  for (const row of rows) if (x.at(row) !== null) kinds.get(mark.at(row)).push(row);
  const drawn = LAYERS.flatMap((kind) => (kind === 'cell' ? [] : groups(frame, encoding, kinds.get(kind)).map((group) => ({ ...group, kind }))));
  const style = styles([...drawn].reverse(), slots); // points are drawn last and get the first colour
  const traces = kinds.get('cell').length ? [cells(frame, encoding, kinds.get('cell'))] : [];
  const many = kinds.get('point').length > MANY_POINTS;
  for (const group of drawn) {
    const color = style.color(group);
    const named = { type: 'scatter', name: plain(group.color) };
    const said = { text: group.rows.map((row) => layerText(frame, encoding, row)), hovertemplate: '%{text}<extra></extra>' };
    if (group.kind === 'point') {
      const bars = encoding.low && encoding.high && kinds.get('point').length <= ERROR_POINTS;
      traces.push({
        ...named, ...said, ...besides(frame, encoding, group.rows, said.text),
        x: group.rows.map(across), y: group.rows.map(up(encoding.y)),
        marker: { color, size: many ? 5 : 8, opacity: many ? 0.6 : 0.85, symbol: SYMBOLS[style.symbol(group) % SYMBOLS.length] },
        ...(bars ? { error_y: whiskers(group.rows, up, color, [encoding.y, encoding.low, encoding.high]) } : {}),
        ...(bars && encoding.x_low ? { error_x: whiskers(group.rows, up, color, [encoding.x, encoding.x_low, encoding.x_high]) } : {}),
      });
      continue;
    }
    group.rows.sort((a, b) => x.at(a) - x.at(b));
    if (group.kind === 'line') {
      traces.push({
        ...named, ...said, mode: 'lines', x: group.rows.map(across), y: group.rows.map(up(encoding.y)),
        line: { color, width: 2, dash: DASHES[style.dash(group) % DASHES.length] },
      });
    } else {
      const back = [...group.rows].reverse();
      traces.push({
        ...named, mode: 'lines', fill: 'toself', fillcolor: faint(color), line: { color, width: 1 }, hoverinfo: 'skip',
        x: [...group.rows, ...back].map(across), y: [...group.rows.map(up(encoding.high)), ...back.map(up(encoding.low))],
      });
    }
  }
  const layout = baseLayout(encoding, width);
  const label = (name) => plain(encoding.labels[name] ?? name);
  Object.assign(layout.xaxis.title, { text: label(encoding.x) });
  Object.assign(layout.yaxis.title, { text: label(encoding.y) });
  if (encoding.limits) layout.yaxis.range = encoding.limits.map(scaled);
  if (encoding.scale === 'probit') {
    const ticks = { tickmode: 'array', tickvals: PROBIT_TICKS.map(probit), ticktext: PROBIT_TICKS.map(String) };
    Object.assign(layout.xaxis, ticks);
    Object.assign(layout.yaxis, ticks);
  }
  if (encoding.scale === 'log') {
    for (const [axis, name] of [[layout.xaxis, encoding.x], [layout.yaxis, encoding.y]]) {
      const ticks = logTicks(frame.present(rows, name).map(Number).sort((a, b) => a - b));
      Object.assign(axis, ticks, ticks.tickvals ? { tickvals: ticks.tickvals.map(Math.log10) } : {});
    }
  }
  return { traces, layout, legend: [layerSigns(drawn, style)], note: '' };
}

// One sign for each name: as a point, a line or an area, whichever of them is drawn last.
function layerSigns(drawn, style) {
  const signs = new Map();
  for (const group of drawn) {
    const how = { point: { point: style.symbol(group) }, line: { dash: style.dash(group) }, band: { fill: true } }[group.kind];
    signs.set(group.color, { name: group.color, color: style.color(group), ...how });
  }
  return [...signs.values()].reverse();
}

const faint = (color) => color + Math.round(255 * BAND_OPACITY).toString(16);

function whiskers(rows, up, color, [middle, low, high]) {
  const off = (name, sign) => rows.map((row) => {
    const end = up(name)(row);
    return end === null ? 0 : Math.max(sign * (end - up(middle)(row)), 0);
  });
  return { type: 'data', symmetric: false, array: off(high, 1), arrayminus: off(low, -1), thickness: 1, width: 0, color };
}

// Names that are printed beside some of the points; what a reader sees when pointing at one stays the same.
function besides(frame, encoding, rows, hovertext) {
  if (!encoding.names) return { mode: 'markers' };
  const names = frame.column(encoding.names);
  return {
    mode: 'markers+text', text: rows.map((row) => plain(shortened(String(names.at(row) ?? ''), 30))), hovertext,
    hovertemplate: '%{hovertext}<extra></extra>', textposition: 'top center', textfont: { size: 11, color: Theme.color('soft') },
  };
}

// Cells of a grid, coloured by the logarithm of a count.
function cells(frame, encoding, rows) {
  const [x, y, count] = [encoding.x, encoding.y, encoding.value[0]].map((name) => frame.column(name));
  const levels = (column) => [...new Set(rows.map((row) => column.at(row)))].sort((a, b) => a - b);
  const step = (values) => Math.min(...values.slice(1).map((value, at) => value - values[at]), Infinity);
  // Empty columns and rows of the grid stay empty, so that a cell is as wide as its neighbours.
  const filled = (values) => {
    const width = Math.max(step(values), 1e-12);
    const length = values.length > 1 ? Math.round((values.at(-1) - values[0]) / width) + 1 : 1;
    return { from: values[0], width, length };
  };
  const [columns, lines] = [filled(levels(x)), filled(levels(y))];
  const blank = (fill) => Array.from({ length: lines.length }, () => Array(columns.length).fill(fill));
  const [z, text] = [blank(null), blank('')];
  let largest = 1;
  for (const row of rows) {
    const [i, j] = [Math.round((y.at(row) - lines.from) / lines.width), Math.round((x.at(row) - columns.from) / columns.width)];
    z[i][j] = Math.log10(count.at(row));
    text[i][j] = layerText(frame, encoding, row);
    largest = Math.max(largest, count.at(row));
  }
  const powers = Array.from({ length: Math.floor(Math.log10(largest)) + 1 }, (_, power) => power);
  return {
    type: 'heatmap', z, text, hovertemplate: '%{text}<extra></extra>', hoverongaps: false,
    x0: columns.from, dx: columns.width, y0: lines.from, dy: lines.width,
    colorscale: [[0, Theme.color('mild')], [1, Theme.color('warm')]], zmin: 0, zmax: Math.max(Math.log10(largest), 1),
    colorbar: {
      thickness: 10, outlinewidth: 0, tickfont: { color: Theme.color('soft') }, lenmode: 'pixels', len: 220, yanchor: 'top', y: 1,
      title: { text: plain(encoding.labels[encoding.value[0]] ?? encoding.value[0]), font: { size: 12, color: Theme.color('soft') } },
      tickvals: powers, ticktext: powers.map((power) => formatted(10 ** power, true)),
    },
  };
}

CHARTS.layers = layersChart;
