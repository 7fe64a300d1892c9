// Before the first paint: the theme the reader chose last, or the one the system prefers.
{
  let theme = null;
  try { theme = localStorage.getItem('haptera-theme'); } catch { /* a file may have no storage */ }
  if (theme !== 'dark' && theme !== 'light') theme = matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light';
  document.documentElement.dataset.theme = theme;
}
