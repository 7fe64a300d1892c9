// grid.js: a table that sorts, filters and pages, with at most one page of rows in the document.

const PAGE_ROWS = 25;
const PAPER_ROWS = 100; // on paper nobody turns a page of a table
const FILTER_FROM = 8;
const SENTENCE_FROM = 44; // characters of a text that is read in several lines
let gridNumber = 0;

class Grid {
  constructor(box, frame, { title, labels = {}, download = true }) {
    Object.assign(this, { box, frame, title, labels, order: null, descending: false, page: 0, words: [] });
    this.rows = frame.all();
    this.id = `grid-${gridNumber += 1}`;
    this.filter = element('input', { type: 'search', id: this.id, autocomplete: 'off', spellcheck: false });
    let waiting = 0;
    this.filter.addEventListener('input', () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => this.search(), 120);
    });
    this.search_box = element('label', { className: 'filter', htmlFor: this.id }, 'Filter ', this.filter);
    this.head = element('tr');
    this.body = element('tbody');
    this.status = element('span', { className: 'status', role: 'status' });
    this.cut = element('p', { className: 'caption cut', hidden: true });
    this.previous = this.button('Previous', () => this.turn(-1));
    this.next = this.button('Next', () => this.turn(1));
    this.csv = this.button('CSV', () => save(fileName(title, 'csv'), this.frame.csv(this.visible), 'text/csv'));
    this.csv.hidden = !download;
    this.headers = frame.columns.map((column) => this.header(column));
    this.head.append(...this.headers.map(({ cell }) => cell));
    const table = element('table', {}, element('caption', { className: 'unseen' }, title),
      element('thead', {}, this.head), this.body);
    box.replaceChildren(
      this.search_box,
      element('div', { className: 'scroll', tabIndex: 0, role: 'region', 'aria-label': `${title}, table` }, table),
      this.cut,
      element('div', { className: 'actions' }, this.previous, this.next, this.status, this.csv),
    );
    this.update();
  }

  button(text, action) {
    const made = element('button', { type: 'button' }, text);
    made.addEventListener('click', action);
    return made;
  }

  header(column) {
    const button = this.button(this.labels[column.name] ?? column.name, () => this.sort(column.name));
    const cell = element('th', { scope: 'col', className: column.isText ? '' : 'number' }, button);
    cell.setAttribute('aria-sort', 'none');
    return { name: column.name, cell };
  }

  // Show other rows of the same frame; sorting and filter stay.
  show(rows) {
    this.rows = rows;
    this.page = 0;
    this.update();
  }

  // Show another frame with the same columns; sorting, filter and page stay as far as they can.
  renew(frame) {
    this.frame = frame;
    this.rows = frame.all();
    this.update();
    this.turn(0);
  }

  sort(name) {
    this.descending = this.order === name && !this.descending;
    this.order = name;
    this.page = 0;
    this.update();
  }

  search() {
    this.words = this.filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.page = 0;
    this.update();
  }

  turn(pages) {
    const last = Math.max(Math.ceil(this.visible.length / PAGE_ROWS) - 1, 0);
    this.page = Math.min(Math.max(this.page + pages, 0), last);
    this.fill();
  }

  update() {
    this.visible = this.frame.matching(this.rows, this.words);
    if (this.order) this.visible = this.frame.sorted(this.visible, this.order, this.descending);
    for (const { name, cell } of this.headers) {
      cell.setAttribute('aria-sort', name !== this.order ? 'none' : this.descending ? 'descending' : 'ascending');
    }
    this.search_box.hidden = this.rows.length < FILTER_FROM;
    this.fill();
  }

  fill() {
    const total = this.visible.length;
    const start = onPaper ? 0 : this.page * PAGE_ROWS;
    const end = Math.min(start + (onPaper ? PAPER_ROWS : PAGE_ROWS), total);
    this.cut.hidden = !onPaper || end === total;
    this.cut.textContent = this.cut.hidden ? '' : `The first ${formatted(end)} of ${counted(total)}; the page on a screen has all.`;
    this.body.replaceChildren(...Array.from(this.visible.subarray(start, end), (row) => this.line(row)));
    const several = total > PAGE_ROWS;
    this.offer(this.previous, several, start > 0);
    this.offer(this.next, several, end < total);
    const [count, whole] = [formatted(total), formatted(this.rows.length)];
    const filtered = this.words.length ? ` (filtered from ${whole})` : '';
    this.csv.textContent = this.words.length ? `CSV (${counted(total)}, filtered)` : `CSV (${total === 1 ? '' : 'all '}${counted(total)})`;
    this.status.textContent = several
      ? `rows ${formatted(start + 1)}–${formatted(end)} of ${count}${filtered}`
      : `${counted(total)}${filtered}`;
  }

  // A disabled button would drop the focus of whoever pages by keyboard, so it is only said to be disabled.
  offer(button, visible, usable) {
    button.hidden = !visible;
    button.setAttribute('aria-disabled', String(!usable));
  }

  line(row) {
    return element('tr', {}, ...this.frame.columns.map((column) => {
      const text = column.shown(row);
      return element('td', { className: !column.isText ? 'number' : text.length > SENTENCE_FROM ? 'sentence' : '' }, text);
    }));
  }
}
