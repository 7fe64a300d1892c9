// controls.js: dropdowns, the chooser of several values, and the legend of a figure.

const CHECKS = 200;
const BAND_OPACITY = 0.18;
const TYPED_FROM = 40;
let dropdowns = 0;

// A labelled dropdown; a column with a single value is only named, and among many values one types to find one.
function dropdown(label, onChange) {
  const select = element('select');
  const fixed = element('strong');
  const found = element('datalist', { id: `names-${dropdowns += 1}` });
  const typed = element('input', { type: 'search', autocomplete: 'off', spellcheck: false, hidden: true });
  typed.setAttribute('list', found.id);
  const box = element('label', { className: 'dropdown' }, element('span', {}, label), select, typed, found, fixed);
  let offered = [];
  let current = '';
  const named = (key) => offered.find(([other]) => other === key)?.[1] ?? '';
  select.addEventListener('change', () => onChange(select.value));
  typed.addEventListener('focus', () => typed.select());
  typed.addEventListener('change', () => {
    const words = typed.value.trim().toLowerCase();
    const fits = (test) => offered.find(([, text]) => test(text.toLowerCase()));
    const match = words && (fits((text) => text === words) ?? fits((text) => text.startsWith(words)) ?? fits((text) => text.includes(words)));
    if (match) onChange(match[0]);
    else typed.value = named(current);
  });
  return {
    box,
    fill(options, value) {
      const names = options.map(([key]) => key);
      const before = offered.map(([key]) => key);
      const many = options.length > TYPED_FROM;
      offered = options;
      current = value;
      if (names.length !== before.length || names.some((name, place) => name !== before[place])) {
        select.replaceChildren(...(many ? [] : options.map(([key, text]) => element('option', { value: key }, text))));
        found.replaceChildren(...(many ? options.map(([, text]) => element('option', { value: text })) : []));
      }
      select.value = value;
      typed.value = named(value);
      typed.hidden = !many;
      select.hidden = many || options.length < 2;
      fixed.hidden = many || !select.hidden;
      fixed.textContent = options.length ? options[0][1] : '–';
    },
  };
}

// Checkboxes behind a button, with a filter, for choosing among many values.
function chooser(label, names, start, onChange) {
  const chosen = new Set(start);
  const summary = element('summary');
  const filter = element('input', { type: 'search', placeholder: 'Filter', 'aria-label': `Filter ${label}` });
  const list = element('div', { className: 'checks' });
  const box = element('details', { className: 'chooser' }, summary);
  const preset = (text, values) => {
    const button = element('button', { type: 'button' }, text);
    button.addEventListener('click', () => { chosen.clear(); values().forEach((name) => chosen.add(name)); refresh(); });
    return button;
  };
  const matching = () => names.filter((name) => name.toLowerCase().includes(filter.value.trim().toLowerCase()));
  const fill = () => {
    const found = matching();
    const shown = found.slice(0, CHECKS).map((name) => {
      const check = element('input', { type: 'checkbox', checked: chosen.has(name) });
      check.addEventListener('change', () => {
        if (check.checked) chosen.add(name); else chosen.delete(name);
        title();
        onChange(chosen);
      });
      return element('label', {}, check, element('span', {}, name));
    });
    if (found.length > CHECKS) shown.push(element('p', {}, `and ${found.length - CHECKS} more: filter to see them`));
    list.replaceChildren(...shown);
  };
  const title = () => { summary.textContent = `${label}: ${chosen.size} of ${names.length}`; };
  const refresh = () => { title(); fill(); onChange(chosen); };
  filter.addEventListener('input', fill);
  const buttons = element('div', { className: 'presets' }, preset('Default', () => start), preset('All listed', matching), preset('None', () => []));
  box.append(element('div', { className: 'panel' }, filter, list, buttons));
  box.addEventListener('toggle', () => { if (box.open) fill(); });
  box.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && box.open) { box.open = false; summary.focus(); }
  });
  document.addEventListener('click', (event) => { if (!box.contains(event.target)) box.open = false; });
  title();
  return { box, chosen };
}
