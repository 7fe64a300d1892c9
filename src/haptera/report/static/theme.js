// theme.js: light or dark, and the colours the charts take from the style sheet.

const Theme = {
  listeners: [],

  get current() { return document.documentElement.dataset.theme; },

  color(name) { return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim(); },

  palette() { return [0, 1, 2, 3, 4, 5, 6].map((slot) => Theme.color(`line-${slot}`)); },

  set(theme, remember) {
    document.documentElement.dataset.theme = theme;
    const button = document.getElementById('theme');
    button.setAttribute('aria-pressed', String(theme === 'dark'));
    if (remember) {
      try { localStorage.setItem('haptera-theme', theme); } catch { /* remembered until the page closes */ }
      Theme.chosen = true;
    }
    for (const listener of Theme.listeners) listener();
  },

  start() {
    const button = document.getElementById('theme');
    button.hidden = false;
    try { Theme.chosen = localStorage.getItem('haptera-theme') !== null; } catch { Theme.chosen = false; }
    button.addEventListener('click', () => Theme.set(Theme.current === 'dark' ? 'light' : 'dark', true));
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', (event) => {
      if (!Theme.chosen) Theme.set(event.matches ? 'dark' : 'light', false);
    });
    Theme.set(Theme.current, false);
  },
};
