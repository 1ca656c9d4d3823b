/**
 * The one script of the pages: fetches the page again after the seconds that <main data-every> names and puts its parts in
 * place, unless nobody looks, somebody types or is being asked, or text is selected. What was folded open stays open. Without
 * script a page asks to be loaded again.
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
