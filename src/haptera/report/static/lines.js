// lines.js: lines and points, each name with a colour, a dash and a marker of its own.

const BAND_LINES = 10;
const MOST_LINES = 200;
const MARKER_POINTS = 60;
const MARKERS = 10;
const SHADED_RUNS = 60;

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

// A name has a colour; where there are more names than colours, those of the second round are dashed and have squares,
// those of the third are dotted and have diamonds, and so on, unless dashes stand for something else.
function styles(lines, slots, dashed = false) {
  const palette = Theme.palette();
  const names = [...new Set(lines.map((line) => line.color))];
  const colors = slots.assign(names);
  const dashes = [...new Set(lines.map((line) => line.dash).filter((name) => name !== null))];
  const free = dashed && !dashes.length;
  const round = (name) => Math.floor(colors.get(name) / palette.length);
  const rounds = free && names.some((name) => round(name) > 0);
  return {
    color: (line) => palette[colors.get(line.color) % palette.length],
    symbol: (line) => round(line.color),
    dash: (line) => (free ? round(line.color) : Math.max(dashes.indexOf(line.dash), 0)),
    legend: [
      names.map((name) => ({
        name, color: palette[colors.get(name) % palette.length], symbol: round(name), ...(rounds ? { dash: round(name) } : {}),
      })),
      dashes.length > 1 ? dashes.map((name, place) => ({ name, dash: place })) : [],
    ],
  };
}

function lineChart(frame, encoding, rows, slots, width, value, state) {
  const x = along(frame, encoding);
  const y = frame.column(encoding.y);
  const known = rows.filter((row) => x.at(row) !== null && y.at(row) !== null);
  const every = groups(frame, encoding, known);
  const style = styles(every.slice(0, MOST_LINES), slots, true);
  const lines = every.slice(0, MOST_LINES).filter((line) => !state.hidden.has(line.color));
  const drawn = state.hidden.size ? lines.flatMap((line) => line.rows) : known;
  const banded = encoding.low && encoding.high && lines.length <= BAND_LINES;
  const traces = [];
  for (const line of lines) {
    line.rows.sort((a, b) => x.at(a) - x.at(b));
    const color = style.color(line);
    if (banded) {
      const inside = line.rows.filter((row) => frame.column(encoding.low).at(row) !== null);
      const back = [...inside].reverse();
      traces.push({
        type: 'scatter', mode: 'lines', fill: 'toself', fillcolor: color, opacity: 0.14, line: { width: 0 }, hoverinfo: 'skip', meta: line.color,
        x: [...inside, ...back].map((row) => x.at(row)),
        y: [...inside.map((row) => frame.column(encoding.high).at(row)), ...back.map((row) => frame.column(encoding.low).at(row))],
      });
    }
  }
  const many = style.legend[0].some(({ symbol }) => symbol > 0);
  for (const line of lines) {
    const color = style.color(line);
    const marked = many || line.rows.length <= MARKER_POINTS;
    traces.push({
      type: 'scatter', mode: marked ? 'lines+markers' : 'lines', meta: line.color,
      name: plain([line.color, line.dash].filter(Boolean).join(' · ')),
      x: line.rows.map((row) => x.at(row)), y: line.rows.map((row) => y.at(row)),
      line: { color, width: 2, dash: DASHES[style.dash(line) % DASHES.length] },
      marker: {
        color, size: many ? 7 : line.rows.length > 20 ? 4 : 6, symbol: SYMBOLS[style.symbol(line) % SYMBOLS.length],
        maxdisplayed: line.rows.length > MARKER_POINTS || (many && line.rows.length > 2 * MARKERS) ? MARKERS : 0,
      },
      text: line.rows.map((row) => hoverText(frame, encoding, row, encoding.y)), hovertemplate: '%{text}<extra></extra>',
    });
  }
  if (encoding.diagonal) {
    traces.unshift({ type: 'scatter', mode: 'lines', hoverinfo: 'skip', x: [0, 1], y: [0, 1], line: { color: Theme.color('soft'), width: 1, dash: 'dash' } });
  }
  if (encoding.flags) traces.push(...lines.map((line) => crosses(frame, encoding, line, style.color(line))));
  const layout = axes(frame, encoding, drawn, width, state.fitted);
  if (encoding.bands) Object.assign(layout, shading(frame, encoding, drawn, width));
  endLabels(frame, encoding, lines, style, layout, width);
  const cut = every.length > MOST_LINES ? `only the first ${MOST_LINES} of ${every.length} lines are drawn` : '';
  return { traces, layout, legend: style.legend, note: cut, toggles: true };
}

// What happened at points of a line.
function crosses(frame, encoding, line, color) {
  const x = along(frame, encoding);
  const flagged = line.rows.filter((row) => frame.column(encoding.flags).at(row) !== null);
  return {
    type: 'scatter', mode: 'markers', name: 'flag', meta: line.color, x: flagged.map((row) => x.at(row)), y: flagged.map((row) => frame.column(encoding.y).at(row)),
    marker: { color, size: 13, symbol: 'x', line: { color: Theme.color('paper'), width: 1.5 } },
    text: flagged.map((row) => hoverText(frame, encoding, row, encoding.y)), hovertemplate: '%{text}<extra></extra>',
  };
}

function scatterChart(frame, encoding, rows, slots, width, value, state) {
  const x = frame.column(encoding.x);
  const y = frame.column(encoding.y);
  const known = rows.filter((row) => x.at(row) !== null && y.at(row) !== null);
  const every = groups(frame, encoding, known);
  const style = styles(every, slots);
  const points = every.filter((group) => !state.hidden.has(group.color));
  const drawn = state.hidden.size ? points.flatMap((group) => group.rows) : known;
  const traces = points.map((group) => {
    const trace = {
      type: 'scatter', mode: 'markers', meta: group.color, name: plain([group.color, group.dash].filter(Boolean).join(' · ')),
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
  const layout = axes(frame, encoding, drawn, width, state.fitted);
  pointLabels(frame, encoding, points, layout, width);
  const [names, dashes] = style.legend; // points have markers where lines have dashes
  const legend = [names.map(({ name, color, symbol }) => ({ name, color, point: symbol })), dashes.map(({ name, dash }) => ({ name, point: dash }))];
  return { traces, layout, legend, note: '', toggles: true };
}

// The runs of a column along x, named where there is room: every other one is shaded, or those that have a name.
function shading(frame, encoding, rows, width) {
  const x = along(frame, encoding);
  const column = frame.column(encoding.bands);
  const ordered = Array.from(rows).sort((a, b) => x.at(a) - x.at(b));
  const runs = [];
  for (const row of ordered) {
    const name = column.at(row) === null ? '' : column.shown(row);
    const last = runs.at(-1);
    if (last && last.name === name) last.end = x.at(row);
    else runs.push({ name, start: last ? last.end : x.at(row), end: x.at(row) });
  }
  if (runs.length < 2 || runs.length > SHADED_RUNS) return {};
  const span = runs.at(-1).end - runs[0].start || 1;
  const unnamed = runs.some((run) => run.name === '');
  const shapes = runs.filter((run, place) => (unnamed ? run.name !== '' : place % 2 === 0)).map((run) => ({
    type: 'rect', xref: 'x', yref: 'paper', x0: run.start, x1: run.end, y0: 0, y1: 1, layer: 'below', line: { width: 0 }, fillcolor: Theme.color('shade'),
  }));
  const pixels = (run) => ((run.end - run.start) / span) * (width - 80);
  const annotations = runs.filter((run) => run.name && pixels(run) > 7 * Math.min(run.name.length, 18)).map((run) => ({
    x: (run.start + run.end) / 2, y: 0, xref: 'x', yref: 'paper', yanchor: 'bottom', showarrow: false,
    text: plain(shortened(run.name, Math.max(18, Math.floor(pixels(run) / 7)))), font: { size: 11.5, color: Theme.color('soft') },
  }));
  return { shapes, annotations };
}

