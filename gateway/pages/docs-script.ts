/**
 * Search, and for each operation that is opened its examples and a form that sends it. The key stays in the page's memory: it is
 * neither stored nor in the examples.
 */
export const DOCS_SCRIPT: string = `
(() => {
  const { origin } = location;
  const make = (tag, properties = {}, children = []) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const cards = [...document.querySelectorAll("section[data-group] > details")];

  // The address that the browser used, also behind a proxy that the gateway does not know of.
  const main = document.querySelector("main");
  for (const code of document.querySelectorAll("pre code"))
    code.textContent = code.textContent.replaceAll(main.dataset.address, origin);

  const tools = document.getElementById("docs-tools");
  tools.hidden = false;
  const key = document.getElementById("docs-key");
  const search = document.getElementById("docs-search");
  const found = document.getElementById("docs-found");
  addEventListener("pagehide", () => (key.value = ""));

  const wordsOf = (card) => (card.querySelector("summary").textContent + " " + card.parentElement.dataset.group).toLowerCase();
  const heads = new Map(cards.map((card) => [card, wordsOf(card)]));
  let texts;
  const show = (matches) => {
    for (const card of cards) card.hidden = !matches(card);
    for (const section of document.querySelectorAll("section[data-group]"))
      section.hidden = section.querySelector("details:not([hidden])") === null;
  };
  const find = () => {
    const words = search.value.toLowerCase().split(/\\s+/).filter(Boolean);
    const has = (text) => words.every((word) => text.includes(word));
    let where = "";
    show((card) => has(heads.get(card)));
    if (cards.every(({ hidden }) => hidden)) {
      texts ??= new Map(cards.map((card) => [card, card.textContent.toLowerCase()]));
      where = " by their fields";
      show((card) => has(texts.get(card)));
    }
    const count = cards.filter(({ hidden }) => !hidden).length;
    found.textContent = words.length === 0 ? ""
      : count === 0 ? "No operation found. Try a path such as /key or a word such as budget."
      : count + (count === 1 ? " operation found" : " operations found") + where + ".";
  };
  search.addEventListener("input", find);

  const indent = (text, by) => text.replaceAll("\\n", "\\n" + by);
  const shell = (text) => "'" + text.replaceAll("'", "'\\\\''") + "'";
  const quoted = (text) => JSON.stringify(text);
  const python = (value, by = "") => {
    if (value === null) return "None";
    if (typeof value === "boolean") return value ? "True" : "False";
    if (typeof value !== "object") return JSON.stringify(value);
    const next = by + "    ";
    const parts = Array.isArray(value) ? value.map((each) => python(each, next))
      : Object.entries(value).map(([name, each]) => quoted(name) + ": " + python(each, next));
    const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
    return parts.length === 0 ? open + close : open + "\\n" + parts.map((part) => next + part + ",\\n").join("") + by + close;
  };
  const examples = {
    curl: ({ method, url, open, body, form }) => [
      "curl " + shell(url) + (method === "GET" ? "" : " -X " + method),
      ...(open ? [] : ['-H "Authorization: Bearer $HEARTH_KEY"']),
      ...(body === null ? [] : ["-H 'Content-Type: application/json'", "-d " + shell(JSON.stringify(body))]),
      ...(form ?? []).map(({ name, value, file }) => "-F " + shell(name + "=" + (file ? "@" + (value || "FILE") : value))),
    ].join(" \\\\\\n  "),
    Python: ({ method, url, open, body, form, reads }) => [
      open ? "import requests" : "import os\\n\\nimport requests", "",
      "answer = requests." + method.toLowerCase() + "(",
      "    " + quoted(url) + ",",
      ...(open ? [] : ['    headers={"Authorization": "Bearer " + os.environ["HEARTH_KEY"]},']),
      ...(body === null ? [] : ["    json=" + python(body, "    ") + ","]),
      ...(form === null ? [] : [
        "    data=" + python(Object.fromEntries(form.filter(({ file }) => !file).map(({ name, value }) => [name, value])), "    ") + ",",
        "    files={" + form.filter(({ file }) => file).map(({ name, value }) => quoted(name) + ": open(" + quoted(value || "FILE") + ', "rb")').join(", ") + "},",
      ]),
      ")",
      "print(" + (reads === "json" ? "answer.json()" : reads === "text" ? "answer.text" : "len(answer.content)") + ")",
    ].join("\\n"),
    TypeScript: ({ method, url, open, body, form, reads }) => {
      const headers = [
        ...(open ? [] : ["Authorization: \`Bearer \${process.env.HEARTH_KEY}\`"]),
        ...(body === null ? [] : ['"Content-Type": "application/json"']),
      ];
      const options = [
        ...(method === "GET" ? [] : ["method: " + quoted(method)]),
        ...(headers.length === 0 ? [] : ["headers: { " + headers.join(", ") + " }"]),
        ...(body === null ? [] : ["body: JSON.stringify(" + indent(JSON.stringify(body, null, 2), "  ") + ")"]),
        ...(form === null ? [] : ["body: form"]),
      ];
      const fields = (form ?? []).map(({ name, value, file }) =>
        "form.append(" + quoted(name) + ", " + (file ? "await openAsBlob(" + quoted(value || "FILE") + ")" : quoted(value)) + ");");
      return [
        ...(fields.length === 0 ? [] : ['import { openAsBlob } from "node:fs";', "", "const form = new FormData();", ...fields]),
        "const answer = await fetch(" + quoted(url) + (options.length === 0 ? ");" : ", {\\n  " + options.join(",\\n  ") + ",\\n});"),
        "console.log(" + (reads === "json" ? "await answer.json()" : reads === "text" ? "await answer.text()" : "(await answer.blob()).size") + ");",
      ].join("\\n");
    },
  };

  let language = "curl";
  const rewrites = new Set();
  const field = (name, required, properties = {}) => {
    const input = make("input", { name, required, autocomplete: "off", spellcheck: false, ...properties });
    return make("label", { className: "field" }, [make("code", { textContent: name }), required ? " (required)" : "", input]);
  };

  const open = (card) => {
    if (card.querySelector(".try") !== null) return;
    const method = card.querySelector(".method").textContent;
    const path = card.querySelector("summary code").textContent;
    const { reads = "json" } = card.dataset;
    const isOpen = "open" in card.dataset;
    const names = (list) => (list ?? "").split(" ").filter(Boolean);
    const inputs = [
      ...[...path.matchAll(/\\{(\\w+)\\}/g)].map(([, name]) => ["path", field(name, true)]),
      ...names(card.dataset.query).map((name) => ["query", field(name.replace("*", ""), name.endsWith("*"))]),
      ...names(card.dataset.form).map((name) => ["form", field(name.replace(/[*@]/g, ""), name.includes("*"), { type: name.includes("@") ? "file" : "text", value: name.startsWith("model") ? main.dataset.model : "" })]),
    ];
    const body = "body" in card.dataset
      ? make("textarea", { rows: 6, spellcheck: false, value: JSON.stringify(JSON.parse(card.dataset.body), null, 2) })
      : null;
    const send = make("button", { textContent: "Send" });
    const status = make("p", { className: "soft" });
    status.setAttribute("role", "status");
    const region = (label, hidden) => {
      const pre = make("pre", { tabIndex: 0, hidden, className: "output" }, [make("code")]);
      pre.setAttribute("role", "region");
      pre.setAttribute("aria-label", label + " of " + method + " " + path);
      return pre;
    };
    const example = region("Example", false);
    const answer = region("Answer", true);
    const valuesOf = (place) => inputs.filter(([of]) => of === place).map(([, label]) => label.querySelector("input"));
    const request = () => {
      const target = path.replace(/\\{(\\w+)\\}/g, (all, name) => {
        const { value = "" } = valuesOf("path").find((input) => input.name === name) ?? {};
        return value === "" ? all : encodeURIComponent(value);
      });
      const query = new URLSearchParams(valuesOf("query").filter(({ value }) => value !== "").map(({ name, value }) => [name, value]));
      const form = valuesOf("form").filter(({ required, value }) => required || value !== "")
        .map(({ name, value, type, files }) => ({ name, value: type === "file" ? files[0]?.name ?? "" : value, file: type === "file", blob: files?.[0] }));
      return {
        method, reads, open: isOpen,
        url: origin + target + (query.size === 0 ? "" : "?" + query),
        body: body === null ? null : JSON.parse(body.value),
        form: "form" in card.dataset ? form : null,
      };
    };
    const buttons = Object.keys(examples).map((name) => make("button", { type: "button", className: "plain", textContent: name }));
    const copy = make("button", { type: "button", className: "plain copy", textContent: "Copy" });
    copy.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(example.textContent);
        copy.textContent = "Copied";
      } catch {
        // Without HTTPS there is no clipboard, and a browser may deny it.
        getSelection().selectAllChildren(example);
        copy.textContent = "Selected: copy it";
      }
    });
    const rewrite = () => {
      copy.textContent = "Copy";
      for (const button of buttons) button.setAttribute("aria-pressed", String(button.textContent === language));
      try {
        example.firstChild.textContent = examples[language](request());
        status.textContent = "";
        body?.removeAttribute("aria-invalid");
      } catch (error) {
        body.setAttribute("aria-invalid", "true");
        status.textContent = "The body is not valid JSON: " + error.message + ".";
      }
    };
    for (const button of buttons)
      button.addEventListener("click", () => {
        language = button.textContent;
        rewrites.forEach((each) => each());
      });
    rewrites.add(rewrite);
    const form = make("form", { className: "try-form" }, [
      ...(inputs.length === 0 ? [] : [make("div", { className: "inputs" }, inputs.map(([, label]) => label))]),
      ...(body === null ? [] : [make("label", { className: "field" }, ["Body (JSON)", body])]),
      make("p", { className: "acts" }, [send, make("span", { className: "soft", textContent: method === "GET" ? "" : "Sends a real request with your key." })]),
      status, answer,
    ]);
    form.addEventListener("input", rewrite);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (!isOpen && key.value.trim() === "") {
        status.textContent = "A key is required: paste it into the field Key above the operations.";
        key.focus();
        return;
      }
      let asked;
      try {
        asked = request();
      } catch {
        rewrite();
        return;
      }
      const headers = isOpen ? {} : { Authorization: "Bearer " + key.value.trim() };
      let content;
      if (asked.body !== null) {
        headers["Content-Type"] = "application/json";
        content = JSON.stringify(asked.body);
      } else if (asked.form !== null) {
        content = new FormData();
        for (const { name, value, file, blob } of asked.form) content.append(name, file ? blob ?? "" : value);
      }
      send.disabled = true;
      status.textContent = "Sending …";
      answer.hidden = true;
      const started = performance.now();
      try {
        const got = await fetch(asked.url, { method, headers, body: content, cache: "no-store", credentials: "omit" });
        const type = (got.headers.get("content-type") ?? "").split(";")[0];
        const outcome = () => got.status + " " + got.statusText + " after " + Math.round(performance.now() - started) + " ms";
        const code = answer.firstChild;
        code.textContent = "";
        if (/json$/.test(type)) {
          const text = await got.text();
          code.textContent = text === "" ? "" : JSON.stringify(JSON.parse(text), null, 2);
        } else if (/^text/.test(type)) {
          answer.hidden = false;
          const reader = got.body.pipeThrough(new TextDecoderStream()).getReader();
          for (let part = await reader.read(); !part.done; part = await reader.read()) code.append(part.value);
        } else {
          code.textContent = (await got.blob()).size + " bytes" + (type === "" ? "" : " of " + type);
        }
        status.textContent = outcome();
        answer.hidden = code.textContent === "";
      } catch (error) {
        status.textContent = "The gateway does not respond: " + error.message;
      }
      send.disabled = false;
    });
    const section = make("section", { className: "try" }, [
      make("h3", { textContent: "Example" }),
      make("div", { className: "acts languages" }, [...buttons, copy]), example,
      make("h3", { textContent: "Try it" }), form,
    ]);
    section.querySelector(".languages").setAttribute("role", "group");
    section.querySelector(".languages").setAttribute("aria-label", "Language of the example");
    card.lastElementChild.prepend(section);
    rewrite();
  };
  for (const card of cards) card.addEventListener("toggle", () => card.open && open(card));

  const follow = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target?.tagName === "DETAILS") target.open = true;
  };
  addEventListener("hashchange", follow);
  follow();
})();
`;
