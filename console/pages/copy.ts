/**
 * Copy buttons, which the stylesheet shows where scripts run: each copies the text of the element whose id is in data-copy, or
 * selects it where the browser has no clipboard (without HTTPS) or denies it.
 */
export const COPY_SCRIPT: string = `
(() => {
  const copy = async (element) => {
    try {
      await navigator.clipboard.writeText(element.textContent);
      return "Copied";
    } catch {
      getSelection().selectAllChildren(element);
      return "Selected: copy it";
    }
  };
  document.addEventListener("click", async ({ target }) => {
    const button = target.closest("button[data-copy]");
    if (!button) return;
    button.textContent = await copy(document.getElementById(button.dataset.copy));
  });
})();
`;
