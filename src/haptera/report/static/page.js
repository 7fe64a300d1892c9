// page.js: figures and tables come alive when the reader comes near.

const NEAR = '400px';
const PAPER_WIDTH = 680;
const PAPER_HEIGHT = 0.7; // of that on the screen
const FADED = '0.12';
let onPaper = false;

class FigureView {
  constructor(box) {
    this.box = box;
    this.plot = box.querySelector('.plot');
    this.drawn = false;
  }

  start() {
    if (this.drawn) return;
    this.drawn = true;
    const { encoding, title, data } = embedded(this.box.dataset.source);
    Object.assign(this, { encoding, title, frame: new Frame(data), slots: new Slots(encoding.palette), selected: {} });
    this.value = encoding.value[0];
    const named = encoding.color.length === 1 ? this.frame.column(encoding.color[0]).levels.names.length : 0;
    this.state = {
      hidden: new Set(), order: null, fitted: ['line', 'scatter'].includes(encoding.kind) && !encoding.diagonal && named > FEW_NAMES,
      changed: () => this.draw(), bringOut: (name) => this.bringOut(name),
    };
    this.controls();
    this.actions();
    this.draw();
    // The chart redraws itself when its box changes, not only the window (a phone that is turned, a printed page).
    let width = this.plot.clientWidth;
    new ResizeObserver(() => {
      if (Math.abs(this.box.clientWidth - width) < 2) return;
      width = this.box.clientWidth;
      this.draw();
    }).observe(this.box);
  }

  // Show what a page that is served has been told since; choices, zoom and sorting stay.
  renew() {
    if (!this.drawn) return;
    const { encoding, data } = embedded(this.box.dataset.source);
    Object.assign(this, { encoding, frame: new Frame(data), revision: 'served' });
    if (this.grid) this.grid.renew(this.frame);
    this.draw();
  }

  label(name) { return this.encoding.labels[name] ?? name; }

  controls() {
    const { encoding, frame } = this;
    const bar = this.box.querySelector('.controls');
    this.dropdowns = [];
    if (encoding.value.length > 1) {
      const show = dropdown('show', (value) => { this.value = value; this.draw(); });
      this.dropdowns.push({ fill: () => show.fill(encoding.value.map((name) => [name, this.label(name)]), this.value) });
      bar.append(show.box);
    }
    for (const name of encoding.select) {
      this.selected[name] = encoding.start[name] ?? frame.column(name).levels.names[0];
      const made = dropdown(this.label(name), (value) => { this.selected[name] = value; this.draw(); });
      this.dropdowns.push({ name, fill: made.fill });
      bar.append(made.box);
    }
    if (encoding.choose) {
      const names = frame.column(encoding.choose).levels.names;
      if (names.length > 1) {
        const start = encoding.start[encoding.choose] ?? names;
        const made = chooser(`${this.label(encoding.choose)}s`, names, start, () => this.draw());
        this.chosen = made.chosen;
        bar.append(made.box);
      }
    }
    if (encoding.limits && ['line', 'scatter'].includes(encoding.kind) && !encoding.diagonal) {
      const fit = element('button', { type: 'button', className: 'quiet' }, 'Fit to the data');
      fit.setAttribute('aria-pressed', String(this.state.fitted));
      fit.addEventListener('click', () => {
        this.state.fitted = !this.state.fitted;
        fit.setAttribute('aria-pressed', String(this.state.fitted));
        this.draw();
      });
      bar.append(fit);
      this.fit = fit;
    }
    this.status = element('span', { className: 'status', role: 'status' });
    bar.append(this.status);
    bar.hidden = !this.dropdowns.length && !this.chosen && !this.fit;
  }

  actions() {
    const bar = this.box.querySelector('.actions');
    const button = (text, action) => {
      const made = element('button', { type: 'button' }, text);
      made.addEventListener('click', action);
      bar.append(made);
      return made;
    };
    const name = (ending) => fileName(this.title, ending);
    this.csvShown = button('CSV', () => save(name('csv'), this.frame.csv(this.rows), 'text/csv'));
    this.csvAll = button('CSV', () => save(name('csv'), this.frame.csv(this.frame.all()), 'text/csv'));
    if (this.encoding.kind !== 'table') button('SVG', () => Plotly.downloadImage(this.plot, { format: 'svg', filename: name('svg').slice(0, -4), width: this.plot.clientWidth, height: this.plot.clientHeight }));
    const behind = this.box.querySelector('.behind');
    behind.addEventListener('toggle', () => this.fillTable());
  }

  // The rows under the current selection; each dropdown offers what those before it leave.
  select() {
    let rows = this.frame.all();
    if (this.encoding.diverging.includes(this.value)) {
      const column = this.frame.column(this.value);
      rows = rows.filter((row) => column.at(row) !== null);
    }
    for (const { name, fill } of this.dropdowns) {
      if (name === undefined) { fill(); continue; }
      const options = this.frame.present(rows, name);
      if (!options.includes(this.selected[name])) this.selected[name] = options[0];
      fill(options.map((option) => [option, option]), this.selected[name]);
      rows = this.frame.only(rows, name, new Set([this.selected[name]]));
    }
    return this.chosen ? this.frame.only(rows, this.encoding.choose, this.chosen) : rows;
  }

  draw() {
    this.rows = this.select();
    const width = onPaper ? PAPER_WIDTH : this.plot.parentElement.clientWidth;
    const chart = CHARTS[this.encoding.kind](this.frame, this.encoding, this.rows, this.slots, width, this.value, this.state);
    if (chart.element) this.showTable(chart);
    else this.plotChart(chart, width);
    legend(this.box.querySelector('.legend'), chart.legend, chart.toggles ? this.state : null);
    this.status.textContent = chart.note;
    this.csvShown.textContent = `CSV (${counted(this.rows.length)} shown)`;
    this.csvAll.textContent = `CSV (${this.frame.length === 1 ? '' : 'all '}${counted(this.frame.length)})`;
    this.csvShown.hidden = this.rows.length === this.frame.length;
    this.fillTable();
  }

  showTable(chart) {
    const held = this.plot.contains(document.activeElement) ? document.activeElement.textContent : null;
    this.plot.style.height = 'auto';
    this.plot.replaceChildren(chart.element);
    if (held) Array.from(this.plot.querySelectorAll('button')).find((button) => button.textContent === held)?.focus();
    this.remark ??= this.box.querySelector('.scroll').insertAdjacentElement('afterend', element('p', { className: 'remark' }));
    this.remark.textContent = chart.remark;
  }

  plotChart(chart, width) {
    this.plot.style.minWidth = chart.least ? `${chart.least}px` : '';
    if (onPaper && ['line', 'scatter'].includes(this.encoding.kind)) chart.layout.height *= PAPER_HEIGHT;
    this.plot.style.height = `${chart.layout.height}px`;
    chart.layout.width = Math.max(width, chart.least ?? 0);
    chart.layout.uirevision = this.revision;
    if (!this.rows.length) {
      chart.layout.annotations = [{ text: 'nothing is selected', showarrow: false, xref: 'paper', yref: 'paper', x: 0.5, y: 0.5 }];
    }
    Plotly.react(this.plot, chart.traces, chart.layout, { displayModeBar: false, responsive: false });
    if (chart.keys) chart.keys(this.plot);
    if (!chart.toggles || this.listens) return;
    this.listens = true;
    this.plot.on('plotly_hover', ({ points }) => this.bringOut(points[0].data.meta ?? null));
    this.plot.on('plotly_unhover', () => this.bringOut(null));
  }

  // Fade everything but one name; drawn again nothing is faded. The traces stay as they are, so no hover is lost.
  bringOut(name) {
    const layer = this.plot.querySelectorAll('.scatterlayer > .trace');
    const traces = this.plot._fullData?.filter((trace) => trace.visible === true) ?? [];
    traces.forEach((trace, place) => {
      if (layer[place]) layer[place].style.opacity = name === null || trace.meta === undefined || trace.meta === name ? '' : FADED;
    });
  }

  fillTable() {
    const behind = this.box.querySelector('.behind');
    if (!behind.open) return;
    if (this.grid) this.grid.show(this.rows);
    else {
      this.grid = new Grid(behind.querySelector('.grid'), this.frame, { title: this.title, labels: this.encoding.labels, download: false });
      this.grid.show(this.rows);
    }
  }
}

class ListingView {
  constructor(box) { this.box = box; }

  start() {
    if (this.grid) return;
    const { labels, title, data } = embedded(this.box.dataset.source);
    this.grid = new Grid(this.box.querySelector('.grid'), new Frame(data), { title, labels });
  }

  // Onto paper, where all rows are shown, and back.
  paper() { this.grid.fill(); }

  renew() {
    if (this.grid) this.grid.renew(new Frame(embedded(this.box.dataset.source).data));
  }
}

function whenNear(views) {
  const byBox = new Map(views.map((view) => [view.box, view]));
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (!entry.isIntersecting) continue;
      observer.unobserve(entry.target);
      byBox.get(entry.target).start();
    }
  }, { rootMargin: NEAR });
  for (const box of byBox.keys()) observer.observe(box);
}

// Paper is light and shows everything; what words mean comes after the results there.
function printing(views) {
  let before = null;
  const definitions = document.querySelector('.definitions');
  addEventListener('beforeprint', () => {
    before = { theme: Theme.current, open: definitions?.open };
    onPaper = true;
    if (definitions) {
      definitions.open = true;
      before.next = definitions.nextSibling;
      document.getElementById('main').insertBefore(definitions, document.getElementById('settings'));
    }
    for (const view of views) view.start();
    for (const view of views) view.paper?.();
    Theme.set('light', false);
  });
  addEventListener('afterprint', () => {
    if (!before) return;
    onPaper = false;
    for (const view of views) view.paper?.();
    if (definitions) {
      definitions.open = before.open;
      document.getElementById('summary').insertBefore(definitions, before.next);
    }
    Theme.set(before.theme, false);
    before = null;
  });
}

for (const packed of document.querySelectorAll('#plotly')) runPacked(packed); // none where there is nothing to draw, or it came as a file
Theme.start();
const figureViews = Array.from(document.querySelectorAll('.figure'), (box) => new FigureView(box));
const views = [...figureViews, ...Array.from(document.querySelectorAll('.listing'), (box) => new ListingView(box))];
Theme.listeners.push(() => { for (const view of figureViews) if (view.drawn) view.draw(); });
printing(views);
if (figureViews.length) figureViews[0].start();
whenNear(views);
document.documentElement.dataset.ready = 'yes';
