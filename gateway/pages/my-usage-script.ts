/**
 * Keeps the key in the tab, so that the page can be refreshed without pasting it again. Without script the form works,
 * but does not keep the key.
 */
export const MY_USAGE_SCRIPT: string = `
(() => {
  const kept = "hearth-key";
  const show = async (fields) => {
    const answer = await fetch("/me", { method: "POST", body: new URLSearchParams(fields), cache: "no-store" });
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (answer.ok) sessionStorage.setItem(kept, fields.key);
    else sessionStorage.removeItem(kept);
    document.title = next.title;
    document.querySelector("link[rel=icon]").href = next.querySelector("link[rel=icon]").href;
    document.querySelector("main").replaceWith(document.adoptNode(next.querySelector("main")));
    bind();
    const calls = fields.older || fields.newer ? document.getElementById("calls") : null;
    (calls ?? document.querySelector("h1")).focus();
  };
  const bind = () => {
    const form = document.querySelector("form");
    const key = form.elements.namedItem("key");
    const known = sessionStorage.getItem(kept);
    if (known !== null) {
      key.required = false;
      key.placeholder = "stored in this tab";
    }
    const forget = document.getElementById("forget");
    forget.hidden = known === null;
    forget.addEventListener("click", () => {
      sessionStorage.removeItem(kept);
      location.replace("/me");
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const days = form.elements.namedItem("days").value;
      const { name, value } = event.submitter ?? {};
      const place = name ? { [name]: value } : {};
      show({ key: key.value || sessionStorage.getItem(kept) || "", days, ...place }).catch(() => form.submit());
    });
  };
  bind();
  const known = sessionStorage.getItem(kept);
  if (known !== null && document.querySelector("main[data-empty]") !== null)
    show({ key: known, days: "30" }).catch(() => undefined);
})();
`;
