/**
 * Keys of every page: `/` searches, `?` lists the keys, `g` and a letter opens a page. Ignored while a field has the focus.
 * In a navigation that scrolls, the current page is in view. The switch of the theme takes effect without loading the page again.
 */
export const KEYBOARD_SCRIPT: string = `
(() => {
  const pages = document.querySelector("header nav");
  const current = pages.querySelector("[aria-current]");
  if (current) pages.scrollLeft = current.offsetLeft - pages.offsetLeft - (pages.clientWidth - current.offsetWidth) / 2;
  const dialog = document.getElementById("shortcuts");
  const show = () => dialog.open ? dialog.close() : dialog.showModal();
  const opener = document.getElementById("show-shortcuts");
  opener.hidden = false;
  opener.addEventListener("click", show);
  let going = -Infinity;
  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing ||
      target.closest("input, select, textarea, [contenteditable]")) return;
    if (key === "?") return show();
    if (dialog.open) return;
    if (key === "/") {
      event.preventDefault();
      document.getElementById("search-all")?.focus();
    } else if (key === "g") {
      going = event.timeStamp;
    } else if (event.timeStamp - going < 1500) {
      going = -Infinity;
      const link = [...document.querySelectorAll("#shortcuts a[data-key]")].find((each) => each.dataset.key === key);
      if (link) location.assign(link.href);
    }
  });
  document.querySelector("form.theme").addEventListener("submit", (event) => {
    const { value } = event.submitter;
    event.preventDefault();
    document.cookie = "hearth_theme=" + value + "; Path=/; Max-Age=31536000; SameSite=Lax";
    document.documentElement.dataset.theme = value;
    for (const each of event.target.elements) each.setAttribute("aria-pressed", String(each === event.submitter));
  });
})();
`;
