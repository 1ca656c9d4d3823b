/**
 * Refreshes a page: fetches it again after the seconds in <main data-every> and replaces its parts, unless the tab is hidden,
 * a control is focused, a question is open or text is selected. Open details stay open. Without
 * script the page reloads as a whole.
 */
export const REFRESH_SCRIPT: string = `
(() => {
  const busy = () => document.hidden || getSelection().type === "Range" ||
    document.querySelector("main .ask[open]") !== null || document.activeElement.matches("main :is(input, select, textarea, button)");
  const refresh = async () => {
    if (busy()) return;
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store" });
      if (!answer.ok) return location.reload();
      const next = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (busy()) return;
      const open = [...document.querySelectorAll("main details[open][id]")].map(({ id }) => id);
      const focused = document.activeElement.id;
      document.title = next.title;
      document.querySelector("link[rel=icon]").href = next.querySelector("link[rel=icon]").href;
      document.querySelector("main").replaceWith(document.adoptNode(next.querySelector("main")));
      for (const id of open) document.getElementById(id)?.setAttribute("open", "");
      if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
      document.body.classList.remove("stale");
    } catch {
      document.body.classList.add("stale");
    }
  };
  const again = () => setTimeout(async () => { await refresh(); again(); }, (document.querySelector("main").dataset.every || 15) * 1000);
  again();
  document.addEventListener("visibilitychange", refresh);
})();
`;
