// graph.js: a class in the middle of those it depends on, and all classes in one picture.

const STAR_NODES = 16;
const STAR_NODES_NARROW = 9;
const NAMED_NODES = 24;
const NAMED_NODES_NARROW = 8;
const EDGE_STEPS = 4;
const MOST_ARROWS = 1500;

const signed = (number) => (number < 0 ? Theme.color('below') : Theme.color('above'));
const signs = () => [[{ name: 'adds', color: Theme.color('above'), dash: 0 }, { name: 'takes away', color: Theme.color('below'), dash: 0 }]];

function bare(encoding, width) {
  const layout = baseLayout(encoding, width);
  for (const axis of [layout.xaxis, layout.yaxis]) Object.assign(axis, { visible: false });
  layout.margin = { l: 12, r: 12, t: 12, b: 12 };
  return layout;
}

// The selected class in the middle, the others around it by the size of their coefficient, clockwise from the top.
function starChart(frame, encoding, rows, slots, width) {
  const [name, weight] = [frame.column(encoding.x), frame.column(encoding.y)];
  const most = width < 600 ? STAR_NODES_NARROW : STAR_NODES;
  const edges = Array.from(rows).filter((row) => weight.at(row) !== null)
    .sort((a, b) => Math.abs(weight.at(b)) - Math.abs(weight.at(a)));
  const drawn = edges.slice(0, most);
  const largest = Math.max(...drawn.map((row) => Math.abs(weight.at(row))), 1e-12);
  const places = drawn.map((row, at) => {
    const angle = Math.PI / 2 - (2 * Math.PI * at) / drawn.length;
    return { row, x: Math.cos(angle), y: Math.sin(angle) };
  });
  const traces = places.map(({ row, x, y }) => ({
    type: 'scatter', mode: 'lines', hoverinfo: 'skip', x: [0, x], y: [0, y], opacity: 0.75,
    line: { color: signed(weight.at(row)), width: 1.5 + 8 * (Math.abs(weight.at(row)) / largest) },
  }));
  const side = ({ x, y }) => (Math.abs(x) < 0.2 ? (y > 0 ? 'top center' : 'bottom center') : x > 0 ? 'middle right' : 'middle left');
  const room = width < 600 ? 14 : LABEL_LENGTH;
  traces.push({
    type: 'scatter', mode: 'markers+text', x: places.map(({ x }) => x), y: places.map(({ y }) => y), cliponaxis: false,
    marker: { size: 11, color: places.map(({ row }) => signed(weight.at(row))), line: { color: Theme.color('paper'), width: 2 } },
    text: places.map(({ row }) => `${plain(shortened(name.shown(row), room))}<br><b>${weight.shown(row)}</b>`),
    textposition: places.map(side), textfont: { size: 12.5, color: Theme.color('ink') },
    customdata: places.map(({ row }) => hoverText(frame, encoding, row, encoding.y)), hovertemplate: '%{customdata}<extra></extra>',
  });
  const middle = rows.length ? frame.column(encoding.select[0]).shown(rows[0]) : '';
  const layout = bare(encoding, width);
  layout.annotations = [{
    x: 0, y: 0, xref: 'x', yref: 'y', showarrow: false, text: `<b>${plain(shortened(middle, room))}</b>`, font: { size: 14, color: Theme.color('ink') },
    bgcolor: Theme.color('raised'), bordercolor: Theme.color('rule'), borderwidth: 1, borderpad: 6,
  }];
  const wide = width < 600 ? 2.1 : 2.6;
  Object.assign(layout.xaxis, { range: [-wide, wide] });
  Object.assign(layout.yaxis, { range: [-1.4, 1.4] });
  layout.dragmode = false;
  const note = edges.length > most ? `the ${most} largest of ${edges.length}` : edges.length ? '' : 'depends on no other class';
  return { traces, layout, legend: edges.length ? signs() : [], note };
}

// Every class where the layout put it; the dependencies of the chosen classes as lines, wider for larger coefficients.
function graphChart(frame, encoding, rows, slots, width) {
  const [own, weight] = [frame.column(encoding.choose), frame.column(encoding.value[0])];
  const [other, otherX, otherY] = encoding.ends.map((end) => frame.column(end));
  const [x, y] = [frame.column(encoding.x), frame.column(encoding.y)];
  const group = encoding.color.length ? frame.column(encoding.color[0]) : null;
  const palette = Theme.palette();
  const tint = (one) => (one.group && Number(one.group) <= palette.length ? palette[Number(one.group) - 1] : Theme.color('ink'));
  const nodes = new Map();
  const node = (name, at, up) => {
    if (!nodes.has(name)) nodes.set(name, { name, x: at, y: up, needs: 0, needed: 0, lit: false, group: '' });
    return nodes.get(name);
  };
  for (const row of frame.all()) {
    const from = node(own.shown(row), x.at(row), y.at(row));
    if (group && group.at(row) !== null) from.group = group.shown(row);
    if (weight.at(row) === null) continue;
    from.needs += 1;
    node(other.shown(row), otherX.at(row), otherY.at(row)).needed += 1;
  }
  const edges = Array.from(rows).filter((row) => weight.at(row) !== null);
  for (const row of rows) nodes.get(own.shown(row)).lit = true;
  const some = rows.length < frame.length;
  if (some) for (const row of edges) nodes.get(other.shown(row)).lit = true;
  const largest = Math.max(...edges.map((row) => Math.abs(weight.at(row))), 1e-12);
  const step = (row) => Math.min(Math.floor((Math.abs(weight.at(row)) / largest) * EDGE_STEPS), EDGE_STEPS - 1);
  const traces = [];
  for (let level = 0; level < EDGE_STEPS; level += 1) {
    for (const positive of [true, false]) {
      const among = edges.filter((row) => step(row) === level && (weight.at(row) > 0) === positive);
      if (!among.length) continue;
      traces.push({
        type: 'scatter', mode: 'lines', hoverinfo: 'skip', opacity: some ? 0.8 : 0.3 + 0.12 * level,
        x: among.flatMap((row) => [x.at(row), otherX.at(row), null]), y: among.flatMap((row) => [y.at(row), otherY.at(row), null]),
        line: { color: signed(positive ? 1 : -1), width: 0.8 + 0.9 * level },
      });
    }
  }
  // The way a class goes to the one it is derived from: a head two thirds along, turned as the line before it.
  const arrows = edges.length <= MOST_ARROWS ? edges : [];
  if (arrows.length) {
    const along = (from, to) => from + 0.66 * (to - from);
    traces.push({
      type: 'scatter', mode: 'markers', hoverinfo: 'skip', opacity: some ? 0.9 : 0.55,
      x: arrows.flatMap((row) => [x.at(row), along(x.at(row), otherX.at(row))]), y: arrows.flatMap((row) => [y.at(row), along(y.at(row), otherY.at(row))]),
      marker: {
        symbol: 'arrow', angleref: 'previous', line: { width: 0 }, size: arrows.flatMap(() => [0, edges.length > 300 && some === false ? 6 : 10]),
        color: arrows.flatMap((row) => [signed(weight.at(row)), signed(weight.at(row))]),
      },
    });
  }
  const all = [...nodes.values()].sort((a, b) => a.needed - b.needed);
  const named = new Set(all.filter(({ lit }) => lit).slice(width < 600 ? -NAMED_NODES_NARROW : -NAMED_NODES));
  traces.push({
    type: 'scatter', mode: 'markers+text', x: all.map((one) => one.x), y: all.map((one) => one.y), cliponaxis: false,
    marker: {
      size: all.map((one) => Math.min((all.length > 300 ? 4 : 6) + 1.6 * Math.sqrt(one.needed), 22)), color: all.map((one) => (one.lit ? tint(one) : Theme.color('rule'))),
      line: { color: Theme.color('paper'), width: 1 },
    },
    text: all.map((one) => (named.has(one) ? plain(shortened(one.name, 22)) : '')), textposition: 'top center', textfont: { size: 11.5, color: Theme.color('ink') },
    customdata: all.map((one) => `<b>${plain(shortened(one.name, 60))}</b><br>depends on: ${one.needs}<br>others depend on it: ${one.needed}${one.group ? `<br>group: ${plain(one.group)}` : ''}`),
    hovertemplate: '%{customdata}<extra></extra>',
  });
  return { traces, layout: bare(encoding, width), legend: edges.length ? signs() : [], note: '' };
}

CHARTS.star = starChart;
CHARTS.graph = graphChart;
