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
