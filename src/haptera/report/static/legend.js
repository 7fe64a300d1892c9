// legend.js: what a colour, a dash and a marker stand for; a click on a name hides what it stands for.

const DASHES = ['solid', 'dash', 'dot', 'dashdot', 'longdash', 'longdashdot'];
const DASH_STROKES = ['', '6 3', '2 3', '6 3 2 3', '10 4', '10 4 2 4'];
const FEW_NAMES = 7; // as many as there are colours
const SYMBOLS = ['circle', 'square', 'diamond', 'triangle-up', 'cross', 'x'];
const SYMBOL_PATHS = [
  'M10 6m-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0-7 0', 'M7 3h6v6h-6z', 'M10 2l4 4-4 4-4-4z', 'M10 2l4 7h-8z',
  'M9 2h2v3h3v2h-3v3h-2v-3h-3v-2h3z', 'M7 2l3 3 3-3 1 1-3 3 3 3-1 1-3-3-3 3-1-1 3-3-3-3z',
];

// Names with their sign; `signs` are {name, color, dash, symbol, point, fill}, of which only the given ones are drawn.
// Where `state` is given, the names of the first group are buttons that hide what they stand for.
function legend(box, groups, state = null) {
  const shape = (tag, attributes) => {
    const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  const draw = ({ color, dash, symbol, point, fill }) => {
    const width = dash === undefined ? 20 : 34;
    const drawing = shape('svg', { width, height: 12, 'aria-hidden': 'true' });
    const stroke = color ?? 'currentColor';
    if (dash !== undefined) {
      drawing.append(shape('path', { d: `M0 6h${width}`, stroke, 'stroke-width': 2, 'stroke-dasharray': DASH_STROKES[dash % DASH_STROKES.length] }));
    } else if (symbol !== undefined) {
      drawing.append(shape('path', { d: 'M0 6h20', stroke, 'stroke-width': 2 }));
    }
    const path = symbol ?? point;
    if (path !== undefined) drawing.append(shape('path', { d: SYMBOL_PATHS[path % SYMBOL_PATHS.length], fill: stroke, transform: `translate(${(width - 20) / 2} 0)` }));
    if (fill) drawing.append(shape('path', { d: 'M2 1h16v10h-16z', stroke, fill: stroke, 'fill-opacity': BAND_OPACITY }));
    return drawing;
  };
  const entry = (sign, hides) => element('li', {}, ...(hides ? [toggle(sign, draw(sign), state)] : [draw(sign), element('span', {}, sign.name)]));
  const lists = groups.filter((signs) => signs.length).map((signs, place) => (
    element('ul', {}, ...signs.map((sign) => entry(sign, state && !place && signs.length > 1)))));
  const held = box.contains(document.activeElement) ? document.activeElement.dataset.name : null;
  box.replaceChildren(...lists, ...(state && groups[0]?.length > FEW_NAMES ? [presets(groups[0], state)] : []));
  if (held) box.querySelector(`[data-name="${CSS.escape(held)}"]`)?.focus();
}

// Hides and shows a name; pointing at it, or reaching it by keyboard, brings it out.
function toggle(sign, drawing, state) {
  const button = element('button', { type: 'button', className: 'sign', title: `Hide or show ${sign.name}` }, drawing, element('span', {}, sign.name));
  button.setAttribute('aria-pressed', String(!state.hidden.has(sign.name)));
  button.dataset.name = sign.name;
  button.addEventListener('click', () => {
    if (!state.hidden.delete(sign.name)) state.hidden.add(sign.name);
    state.changed();
  });
  for (const event of ['mouseenter', 'focus']) button.addEventListener(event, () => state.bringOut(sign.name));
  for (const event of ['mouseleave', 'blur']) button.addEventListener(event, () => state.bringOut(null));
  return button;
}

function presets(signs, state) {
  const preset = (text, hidden) => {
    const button = element('button', { type: 'button' }, text);
    button.addEventListener('click', () => { state.hidden.clear(); hidden.forEach((name) => state.hidden.add(name)); state.changed(); });
    return button;
  };
  return element('div', { className: 'presets' }, preset('Show all', []), preset('Hide all', signs.map(({ name }) => name)));
}
