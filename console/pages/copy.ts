/** Shows the copy buttons, which need script: each copies the text of the element whose id is in data-copy. */
export const COPY_SCRIPT: string = `
(() => {
  const show = () => document.querySelectorAll("button[data-copy]").forEach((button) => { button.hidden = !navigator.clipboard; });
  document.addEventListener("click", async ({ target }) => {
    const button = target.closest("button[data-copy]");
    if (!button) return;
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  });
  show();
})();
`;
