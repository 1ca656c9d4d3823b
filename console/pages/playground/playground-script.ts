/**
 * Streams the answers of the playground, each into a card, and stops them. Without script the form is answered by a page. The
 * key stays in its field; the page is not left, so chosen images stay, too.
 */
export const PLAYGROUND_SCRIPT: string = `
(() => {
  const form = document.getElementById("playground");
  const stop = document.getElementById("stop");
  const status = document.getElementById("p-status");
  const answers = document.getElementById("answers");
  let running = null;
  // Without it, the browser asks for a password when the session has ended.
  const headers = { "x-requested-with": "fetch" };

  const showMistakes = (mistakes) => {
    form.querySelectorAll(".mistake").forEach((each) => each.remove());
    form.querySelectorAll("[aria-invalid]").forEach((each) => each.removeAttribute("aria-invalid"));
    let first = null;
    for (const [name, text] of Object.entries(mistakes)) {
      const field = document.getElementById("p-" + name);
      const mistake = document.createElement("p");
      mistake.className = "mistake";
      mistake.id = field.id + "-mistake";
      mistake.textContent = text;
      field.after(mistake);
      field.setAttribute("aria-invalid", "true");
      const described = (field.getAttribute("aria-describedby") ?? "").split(" ").filter((id) => id !== "" && id !== mistake.id);
      field.setAttribute("aria-describedby", [...described, mistake.id].join(" "));
      first ??= field;
    }
    first?.focus();
  };

  const openCard = (model) => {
    const card = document.getElementById("answer-card").content.cloneNode(true).firstElementChild;
    const part = (name) => card.querySelector("[data-part=" + name + "]");
    const show = (look, word) => {
      card.querySelectorAll("[data-look]").forEach((each) => { each.hidden = each.dataset.look !== look; });
      part("word").textContent = word;
    };
    const add = (name, text) => {
      const place = part(name);
      place.append(text);
      place.hidden = false;
      if (name === "reasoning") place.parentElement.hidden = false;
    };
    part("model").textContent = model;
    answers.querySelector(".split").append(card);
    let call = null;
    let known = { usage: [], times: [] };
    const facts = (more) => {
      known = { ...known, ...more };
      part("facts").textContent = [...known.usage, ...known.times].join(" · ");
    };
    return {
      card, show, add, facts,
      link: (href) => { call = href; part("call").href = href; part("call").hidden = false; },
      tool: ({ name, arguments: text }) => {
        const title = document.createElement("h4");
        title.className = "by";
        title.textContent = "Tool call: " + name;
        const code = document.createElement("pre");
        code.className = "secret";
        code.tabIndex = 0;
        code.textContent = text;
        part("tools").append(title, code);
      },
      fail: (text) => { show("bad", "failed"); add("error", text); },
      // The ledger has the cost, also of an answer that was stopped.
      bill: async () => {
        if (call === null) return;
        const answer = await fetch("/playground/calls/" + call.split("/").pop(), { headers }).catch(() => null);
        if (answer?.ok !== true) return;
        facts(await answer.json());
      },
    };
  };

  const read = async (response, take) => {
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const events = (rest + part.value).split("\\n\\n");
      rest = events.pop();
      for (const event of events) take(JSON.parse(event.slice("data: ".length)));
    }
  };

  const ask = async (model, fields, signal) => {
    const shown = openCard(model);
    const takes = {
      started: ({ call }) => shown.link(call),
      text: ({ text }) => { shown.show("none", "answering"); shown.add("text", text); },
      reasoning: ({ text }) => { shown.show("none", "reasoning"); shown.add("reasoning", text); },
      ended: ({ answer }) => {
        answer.tools.forEach(shown.tool);
        if (answer.error !== null) shown.add("error", answer.error);
        shown.show(answer.look, answer.word);
        shown.facts({ usage: answer.usage, times: answer.times });
        ended = true;
      },
    };
    let ended = false;
    try {
      const path = form.elements.namedItem("key").value.trim() === "" && form.dataset.session !== "" ? form.dataset.session : "/playground/answer";
      const response = await fetch(path, { method: "POST", body: fields, headers, signal });
      if (response.ok) await read(response, (event) => takes[event.kind](event));
      else {
        const { error, mistakes } = await response.json();
        if (mistakes !== undefined) {
          shown.card.remove();
          return showMistakes(mistakes);
        }
        shown.fail(error.message);
        ended = true;
      }
      if (!ended) shown.fail("The connection to the supervisor ended before the answer.");
    } catch {
      if (signal.aborted) shown.show("warn", "stopped");
      else shown.fail("The supervisor does not answer: check that it is running.");
    }
    shown.card.removeAttribute("aria-busy");
    await shown.bill();
  };

  // A connection that ends while a form is sent has no answer.
  const isTooLarge = () => {
    const bytes = [...document.getElementById("p-images").files].reduce((sum, { size }) => sum + size, 0);
    if (bytes <= form.dataset.max) return false;
    showMistakes({ images: "Images must have at most " + Math.floor(form.dataset.max / 1048576) + " MB together: choose fewer or smaller ones." });
    return true;
  };

  const send = async () => {
    const models = [...new Set(new FormData(form).getAll("model").map((each) => each.trim()))].filter((each) => each !== "");
    running?.abort();
    const own = new AbortController();
    running = own;
    showMistakes({});
    if (answers.querySelector("h2") === null) answers.insertAdjacentHTML("afterbegin", "<h2>Answers</h2>");
    answers.querySelector(".split").replaceChildren();
    stop.hidden = false;
    status.textContent = "Asking…";
    await Promise.all((models.length === 0 ? [""] : models).map((model) => {
      const fields = new FormData(form);
      fields.set("model", model);
      return ask(model, fields, own.signal);
    }));
    if (running !== own) return;
    running = null;
    stop.hidden = true;
    status.textContent = form.querySelector(".mistake") === null ? "Done." : "Nothing was sent.";
  };

  const showCode = async (submitter) => {
    showMistakes({});
    const fields = new FormData(form, submitter);
    const answer = await fetch(form.action, { method: "POST", body: fields, headers: { accept: "text/html" } }).catch(() => null);
    if (answer === null) {
      status.textContent = "The supervisor does not answer: check that it is running.";
      return;
    }
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const code = next.getElementById("code");
    if (code === null) {
      status.textContent = next.querySelector("main").textContent.trim();
      return;
    }
    showMistakes(Object.fromEntries([...next.querySelectorAll("#playground .mistake")]
      .map(({ id, textContent }) => [id.split("-")[1], textContent])));
    document.getElementById("code").replaceWith(document.adoptNode(code));
    status.textContent = "";
  };

  stop.addEventListener("click", () => running?.abort());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (isTooLarge()) return;
    if (event.submitter?.value === "code") showCode(event.submitter);
    else send();
  });
})();
`;
