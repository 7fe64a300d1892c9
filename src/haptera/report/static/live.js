// live.js: a page that is served asks for new data, and shows it without losing what the reader has chosen.

const PERIOD = 1000;
const AWAY = 5000; // between questions while the server does not answer

const text = (tag, content) => element(tag, {}, content);

class Live {
  constructor(views) {
    this.views = new Map(views.map((view) => [view.box.id, view]));
    this.status = document.getElementById('live');
    this.version = null;
    this.shape = null;
    this.fine = this.status.textContent;
  }

  async ask() {
    let wait = PERIOD;
    try {
      const answer = await fetch('data.json', { cache: 'no-store', headers: this.version ? { 'If-None-Match': this.version } : {} });
      if (answer.status === 200) {
        this.show(await answer.json());
        this.version = answer.headers.get('ETag');
      } else if (answer.status !== 304) throw new Error(String(answer.status));
      this.say(this.fine);
    } catch {
      this.say('The server does not answer; this page shows what was last known.');
      wait = AWAY;
    }
    setTimeout(() => this.ask(), document.hidden ? AWAY : wait);
  }

  say(sentence) {
    document.documentElement.dataset.updated = this.version ?? '';
    if (this.status.textContent !== sentence) this.status.textContent = sentence;
  }

  show({ shape, answers, notes, captions, data }) {
    const known = JSON.stringify(shape);
    const gone = [...this.views.keys()].some((id) => !(id in data)); // between the page and its first data
    if (gone || (this.shape !== null && this.shape !== known)) { // a section has come or gone
      location.reload();
      return;
    }
    this.shape = known;
    const told = JSON.stringify([answers, notes]);
    if (told !== this.told) { // else what the reader has marked stays marked
      document.querySelector('.answers').replaceChildren(...answers.map(
        ([question, sentence, number, figure, target]) => element(
          'div', {}, text('dt', question), ...(number ? [element('dd', { className: 'large' }, number)] : []), text('dd', sentence),
          ...(target ? [element('dd', { className: 'seen' }, element('a', { href: `#${target}` }, figure))] : []),
        ),
      ));
      this.notes(notes);
      this.told = told;
    }
    for (const [id, content] of Object.entries(data)) {
      const source = document.getElementById(`${id}-data`);
      const view = this.views.get(id);
      if (!source || !view) { location.reload(); return; }
      source.textContent = JSON.stringify(content);
      const caption = view.box.querySelector('figcaption, .caption');
      if (caption) caption.textContent = captions[id];
      view.renew();
    }
  }

  notes(sentences) {
    let list = document.querySelector('ul.notes');
    if (!list && sentences.length) {
      list = element('ul', { className: 'notes', 'aria-label': 'Notes' });
      document.querySelector('.answers').after(list);
    }
    list?.replaceChildren(...sentences.map((sentence) => text('li', sentence)));
  }
}

new Live(views).ask();
