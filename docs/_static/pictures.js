/* Pictures that are there light and dark follow the button for the theme; left alone, they follow the reader's screen. */
const follow = () => {
  const theme = document.body.dataset.theme;
  for (const source of document.querySelectorAll("picture source")) {
    source.dataset.media ??= source.media;
    source.media = { light: "not all", dark: "all" }[theme] ?? source.dataset.media;
  }
};
new MutationObserver(follow).observe(document.body, { attributeFilter: ["data-theme"] });
follow();

/* On a phone, columns of sentences keep their shape; a table whose later columns are all numbers or words needs no such room. */
for (const table of document.querySelectorAll("table.docutils")) {
  const cells = [...table.querySelectorAll("td:not(:first-child)")];
  table.classList.toggle("short", cells.every((cell) => cell.textContent.trim().length <= 12));
}
