// labels.js: names beside what they name, where there is room, none over another.

const LABEL_WIDTH = 640; // a narrower figure has its legend alone
const MOST_LABELS = 30;
const LINE_GAP = 14;
const LETTER = 6.3;
const LABEL_LETTERS = 18;

// Positions, moved as little as possible so that neighbours are `gap` apart and all lie between two ends, as far as they
// fit: those that would overlap become a block around their mean, and blocks that then touch become one.
function spread(wanted, gap, from, to) {
  const order = wanted.map((_, place) => place).sort((a, b) => wanted[a] - wanted[b]);
  const blocks = [];
  const first = (block) => {
    const long = gap * (block.members.length - 1);
    return Math.max(from, Math.min(to - long, block.sum / block.members.length - long / 2));
  };
  for (const place of order) {
    blocks.push({ members: [place], sum: wanted[place] });
    while (blocks.length > 1) {
      const [before, last] = blocks.slice(-2);
      if (first(before) + gap * before.members.length <= first(last)) break;
      blocks.splice(-2, 2, { members: [...before.members, ...last.members], sum: before.sum + last.sum });
    }
  }
  const placed = [];
  for (const block of blocks) block.members.forEach((place, at) => { placed[place] = first(block) + gap * at; });
  return placed;
}

// The name of each line at its right end, in the margin, with a stroke of the line's colour and dash that leads to it.
function endLabels(frame, encoding, lines, style, layout, width) {
  const x = along(frame, encoding);
  const { range } = layout.yaxis;
  if (width < LABEL_WIDTH || lines.length < 2 || lines.length > MOST_LABELS || encoding.dash || encoding.log_x || x.isText || !range) return;
  const tall = layout.height - layout.margin.t - layout.margin.b;
  const pixel = (value) => ((range[1] - value) / (range[1] - range[0])) * tall;
  const scaled = encoding.log_y ? logarithm : (value) => value; // as plotly has the range and annotations, but not shapes
  const shape = encoding.log_y ? (power) => 10 ** power : (value) => value;
  const ends = lines.map((line) => scaled(frame.column(encoding.y).at(line.rows.at(-1))));
  if (ends.includes(null)) return;
  const places = spread(ends.map(pixel), LINE_GAP, 4, tall - 4).map((place) => range[1] - (place / tall) * (range[1] - range[0]));
  const names = lines.map((line) => shortened(line.color, LABEL_LETTERS));
  layout.margin.r = 44 + LETTER * Math.max(...names.map((name) => name.length));
  const across = width - layout.margin.l - layout.margin.r;
  const [least, most] = [Math.min(...lines.map((line) => x.at(line.rows[0]))), Math.max(...lines.map((line) => x.at(line.rows.at(-1))))];
  const room = 0.015 * (most - least || 1);
  if (!encoding.diagonal) layout.xaxis.range = [least - room, most + room];
  layout.shapes = [...(layout.shapes ?? []), ...lines.map((line, place) => ({
    type: 'line', xref: 'paper', yref: 'y', x0: 1, x1: 1 + 24 / across, y0: shape(ends[place]), y1: shape(places[place]),
    line: { color: style.color(line), width: 1.5, dash: DASHES[style.dash(line) % DASHES.length] },
  }))];
  layout.annotations = [...(layout.annotations ?? []), ...lines.map((line, place) => ({
    xref: 'paper', yref: 'y', x: 1, y: places[place], xanchor: 'left', yanchor: 'middle', xshift: 26, showarrow: false,
    text: plain(names[place]), font: { size: 11.5, color: Theme.color('ink') }, name: line.color,
  }))];
}

// The name of each point beside it, in a column of its own or where every name has one point: at the nearest place that is free.
function pointLabels(frame, encoding, drawn, layout, width) {
  const groups = encoding.names
    ? drawn.flatMap((group) => group.rows.map((row) => ({ rows: [row], color: frame.column(encoding.names).shown(row) })))
    : drawn;
  const { range } = layout.yaxis;
  if (width < LABEL_WIDTH || groups.length < 2 || groups.length > MOST_LABELS || groups.some((group) => group.rows.length > 1) || !range) return;
  const scaled = encoding.log_x ? Math.log10 : (value) => value;
  const points = groups.map(({ rows: [row] }) => [scaled(frame.column(encoding.x).at(row)), frame.column(encoding.y).at(row)]);
  if (frame.column(encoding.x).isText || points.some(([across]) => !Number.isFinite(across))) return;
  const [least, most] = [Math.min(...points.map(([across]) => across)), Math.max(...points.map(([across]) => across))];
  const room = 0.06 * (most - least || 1);
  layout.xaxis.range = [least - room, most + 2.5 * room];
  const [wide, tall] = [width - layout.margin.l - layout.margin.r, layout.height - layout.margin.t - layout.margin.b];
  const at = points.map(([across, up]) => [
    ((across - layout.xaxis.range[0]) / (layout.xaxis.range[1] - layout.xaxis.range[0])) * wide,
    ((range[1] - up) / (range[1] - range[0])) * tall,
  ]);
  const boxes = at.map(([left, top]) => [left - 6, top - 6, left + 6, top + 6]);
  layout.annotations = groups.map((group, place) => {
    const name = shortened(group.color, LABEL_LETTERS);
    const [left, top] = freePlace(at[place], LETTER * name.length + 4, boxes, [wide, tall]);
    boxes.push([left, top - 7, left + LETTER * name.length + 4, top + 7]);
    return {
      x: points[place][0], y: points[place][1], ax: left + 2 - at[place][0], ay: top - at[place][1], xanchor: 'left', yanchor: 'middle',
      showarrow: true, arrowhead: 0, arrowwidth: 0.8, arrowcolor: Theme.color('rule'), standoff: 5, text: plain(name), name: group.color,
      font: { size: 11.5, color: Theme.color('ink') },
    };
  });
}

function freePlace([x, y], long, taken, [wide, tall]) {
  const overlaps = (left, top) => left < 0 || left + long > wide || top < 8 || top > tall - 8
    || taken.some(([a, b, c, d]) => left < c && left + long > a && top - 7 < d && top + 7 > b);
  for (let away = 10; away < 160; away += 7) {
    const sides = [[x + away, y], [x - away - long, y], [x - long / 2, y - away - 4], [x - long / 2, y + away + 4]];
    const corners = [[x + away, y - away], [x + away, y + away], [x - away - long, y - away], [x - away - long, y + away]];
    const free = [...sides, ...corners].find(([left, top]) => !overlaps(left, top));
    if (free) return free;
  }
  return [x + 10, y];
}
