// table.js: adapters by shifts as papers print them: best in bold, second underlined, what others published below a rule.

const PRINTED_DIGITS = 1;

function tableChart(frame, encoding, rows, slots, width, value, state) {
  const column = (name) => frame.column(name);
  const across = frame.present(rows, encoding.x);
  const lines = new Map();
  for (const row of rows) {
    const source = column(encoding.source).at(row) ?? '';
    const key = JSON.stringify([source, column(encoding.y).shown(row)]);
    if (!lines.has(key)) lines.set(key, { name: column(encoding.y).shown(row), source, cells: new Map() });
    lines.get(key).cells.set(column(encoding.x).shown(row), row);
  }
  const every = [...lines.values()];
  const own = sortedLines(frame, every.filter(({ source }) => !source), value, state);
  const cell = (row) => {
    const made = element('td', { className: 'number' });
    if (row === undefined || column(value).at(row) === null) { made.append('–'); return made; }
    const text = column(value).at(row).toFixed(PRINTED_DIGITS).replace('-', '−');
    const rank = column(encoding.rank).at(row);
    made.append(rank === 1 ? element('strong', {}, text) : rank === 2 ? element('u', {}, text) : text);
    const sd = column(encoding.spread)?.at(row) ?? null;
    if (sd !== null) made.append(element('small', {}, `±${sd.toFixed(PRINTED_DIGITS)}`));
    made.title = hoverText(frame, encoding, row, value).replaceAll('<br>', '\n').replace(/<.?b>/g, '')
      .replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&');
    return made;
  };
  const line = ({ name, cells }) => element('tr', {}, element('th', { scope: 'row' }, name), ...across.map((shift) => cell(cells.get(shift))));
  const bodies = [element('tbody', {}, ...own.map(line))];
  for (const source of new Set(every.map((each) => each.source).filter(Boolean))) {
    const label = element('tr', {}, element('th', { scope: 'rowgroup', colSpan: across.length + 1 }, element('span', {}, `Published: ${source}`)));
    bodies.push(element('tbody', { className: 'published' }, label, ...every.filter((each) => each.source === source).map(line)));
  }
  const made = element('table', { className: 'paper' }, tableHead(frame, encoding, rows, across, state), ...bodies);
  const remark = rows.length ? column(encoding.remark).at(rows[0]) : null;
  return { element: made, remark: remark ?? '', legend: [], note: '' };
}

// A line of families over one of shifts, each of which sorts the rows: the best first, and again as they were.
function tableHead(frame, encoding, rows, across, state) {
  const named = new Map(Array.from(rows, (row) => [frame.column(encoding.x).shown(row), frame.column(encoding.bands).at(row) ?? '']));
  const families = [];
  for (const shift of across) {
    const name = named.get(shift);
    if (families.at(-1)?.name === name) families.at(-1).size += 1;
    else families.push({ name, size: 1 });
  }
  const heads = across.map((shift) => {
    const button = element('button', { type: 'button' }, shift);
    button.addEventListener('click', () => { state.order = state.order === shift ? null : shift; state.changed(); });
    const cell = element('th', { scope: 'col', className: 'number' }, button);
    cell.setAttribute('aria-sort', state.order === shift ? 'other' : 'none');
    return cell;
  });
  const over = families.map(({ name, size }) => element(name ? 'th' : 'td', { colSpan: size, className: 'family', ...(name ? { scope: 'colgroup' } : {}) }, name));
  const first = element('th', { scope: 'col' }, element('span', {}, encoding.labels[encoding.y] ?? encoding.y));
  return element('thead', {}, ...(families.some(({ size, name }) => name && size > 1) ? [element('tr', {}, element('td'), ...over)] : []), element('tr', {}, first, ...heads));
}

function sortedLines(frame, lines, value, state) {
  if (!state.order) return lines;
  const sign = value === 'error' ? 1 : -1;
  const key = ({ cells }) => {
    const row = cells.get(state.order);
    const number = row === undefined ? null : frame.column(value).at(row);
    return number === null ? Infinity : sign * number;
  };
  return [...lines].sort((a, b) => key(a) - key(b));
}
