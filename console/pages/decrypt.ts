/**
 * Shows the changes of an encrypted vault: the passphrase and what it decrypts stay in the browser. The form is hidden without
 * script, and where the browser has no cryptography (an address without HTTPS). LiveSync's second encryption: PBKDF2 of the
 * passphrase, then for each text its first 12 bytes are the vector, the next 32 the salt of its key (HKDF), the rest AES-GCM.
 */
export const DECRYPT_SCRIPT: string = `
(() => {
  const form = document.getElementById("decrypt");
  if (form === null || !window.crypto.subtle) return;
  form.parentElement.hidden = false;
  const { history, at, path } = form.dataset;
  const status = document.getElementById("decrypt-status");
  const shown = document.getElementById("decrypted");

  const ask = async (url, body) => {
    const answer = await fetch(history + url, body === undefined ? {} :
      { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error("the supervisor responded with status " + answer.status);
    return answer.json();
  };
  const bytesOf = (base64) => Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));
  const masterKey = async (passphrase, salt) => {
    const known = await crypto.subtle.importKey("raw", new TextEncoder().encode(passphrase), "PBKDF2", false, ["deriveBits"]);
    const bits = await crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-256", iterations: 310000, salt }, known, 256);
    return crypto.subtle.importKey("raw", bits, "HKDF", false, ["deriveKey"]);
  };
  const decrypt = async (master, text) => {
    if (!text.startsWith("%=")) throw new Error("it contains notes encrypted with a version older than 2");
    const sealed = bytesOf(text.slice(2));
    const derivation = { name: "HKDF", hash: "SHA-256", salt: sealed.slice(12, 44), info: new Uint8Array() };
    const key = await crypto.subtle.deriveKey(derivation, master, { name: "AES-GCM", length: 256 }, false, ["decrypt"]);
    const open = crypto.subtle.decrypt({ name: "AES-GCM", iv: sealed.slice(0, 12) }, key, sealed.slice(44));
    return new TextDecoder().decode(await open.catch(() => { throw new Error("incorrect passphrase"); }));
  };

  const readNote = async (master, doc) => {
    const isSealed = doc.path.startsWith("/\\\\:");
    const note = isSealed ? { ...doc, ...JSON.parse(await decrypt(master, doc.path.slice(3))) } : doc;
    const inside = note.eden?.["h:++encrypted-hkdf"];
    if (inside) note.eden = JSON.parse(await decrypt(master, inside.data));
    return { ...note, isWanted: !note.deleted && isWanted(note.path) };
  };
  const notesAt = async (master, time) => {
    const [notes, unreadable] = [new Map(), []];
    let page = { next: "" };
    let why;
    while (page.next !== null) {
      page = await ask("/notes?" + new URLSearchParams({ at: time, start: page.next }));
      for (const { doc } of page.rows) {
        if (typeof doc.path !== "string") continue;
        // A member of the vault can write notes that cannot be decrypted.
        const note = await readNote(master, doc).catch((error) => { why ??= error; });
        if (note === undefined) unreadable.push(doc._id);
        else notes.set(doc._id, note);
      }
    }
    if (why !== undefined && notes.size === 0) throw why;
    return { notes: new Map([...notes].filter(([, each]) => each.isWanted)), unreadable, at: page.at };
  };
  const folder = path.replace(/\\/+$/, "");
  const isWanted = (each) => path === "" || each === folder || each.startsWith(folder + "/");
  const isSame = (one, other) => other !== undefined && one.path === other.path &&
    JSON.stringify([one.children, Object.keys(one.eden ?? {})]) === JSON.stringify([other.children, Object.keys(other.eden ?? {})]);

  const textOf = async (master, note) => {
    if (note === undefined) return "";
    const data = new Map(Object.entries(note.eden ?? {}).map(([id, each]) => [id, each.data]));
    const missing = [...new Set(note.children)].filter((id) => !data.has(id));
    for (let from = 0; from < missing.length; from += 8)
      for (const chunk of await ask("/chunks", { ids: missing.slice(from, from + 8) }))
        data.set(chunk._id, chunk.e_ ? await decrypt(master, chunk.data) : chunk.data);
    if (!note.children.every((id) => data.has(id))) throw new Error("part of " + note.path + " is missing on the server");
    return note.children.map((id) => data.get(id)).join("");
  };

  const add = (parent, name, text = "", className = "") => {
    const element = parent.appendChild(document.createElement(name));
    element.textContent = text;
    if (className) element.className = className;
    return element;
  };
  const tableOf = (className, heads) => {
    const card = add(shown, "div", "", "card scroll");
    card.tabIndex = 0;
    const table = add(card, "table", "", className);
    const row = add(add(table, "thead"), "tr");
    for (const head of heads) add(row, "th", head).scope = "col";
    return add(table, "tbody");
  };
  const around = 3;
  const showTexts = (then, now, time) => {
    const [left, right] = [then, now].map((text) => text.split(/\\r?\\n/));
    const limit = Math.min(left.length, right.length);
    let first = 0;
    while (first < limit && left[first] === right[first]) first += 1;
    let last = 0;
    while (last < limit - first && left.at(-1 - last) === right.at(-1 - last)) last += 1;
    const body = tableOf("compare", [new Date(time).toLocaleString(), "now"]);
    const same = (from, to) => {
      for (let line = from; line < to; line += 1) {
        const row = add(body, "tr", "", "same");
        for (const text of [left[line], left[line]]) add(row, "td", text);
      }
    };
    const gap = (lines) => { if (lines > 0) add(add(body, "tr", "", "gap"), "td", "… " + lines + " unchanged lines").colSpan = 2; };
    const above = first > around + 1 ? first - around : 0;
    gap(above);
    same(above, first);
    for (let line = first; line < Math.max(left.length, right.length) - last; line += 1) {
      const row = add(body, "tr", "", "changed");
      for (const side of [left, right])
        if (line < side.length - last) add(add(row, "td"), "mark", side[line]);
        else add(row, "td", "", "absent");
    }
    const below = last > around + 1 ? around : last;
    same(left.length - last, left.length - last + below);
    gap(last - below);
  };
  const showNote = async (master, [then, now], time) => {
    shown.replaceChildren();
    status.textContent = (now ?? then).path + " changed.";
    add(shown, "h2", "Changes since then");
    if ([then, now].some((note) => note?.type === "newnote")) return add(shown, "p", "Not a text file.");
    showTexts(await textOf(master, then), await textOf(master, now), time);
  };

  const show = async (passphrase) => {
    const { salt, now: present } = await ask("");
    if (salt === null) throw new Error("its security seed is missing");
    const master = await masterKey(passphrase, bytesOf(salt));
    // The store's own clock may be ahead of this one.
    const { notes: now, unreadable } = await notesAt(master, Math.max(present, Date.now()));
    // Earlier than requested where the history is thinned.
    const { notes: then, unreadable: before, at: time } = await notesAt(master, at);
    const ids = [...new Set([...then.keys(), ...now.keys()])].filter((id) => !(then.has(id) && isSame(then.get(id), now.get(id))));
    status.textContent = ids.length === 0 ? "No changes." : ids.length + (ids.length === 1 ? " file changed." : " files changed.");
    const left = new Set([...unreadable, ...before]).size;
    if (left > 0) status.textContent += " " + left + (left === 1 ? " note" : " notes") + " cannot be decrypted.";
    const rows = ids.map((id) => [then.get(id), now.get(id)]);
    const [only] = rows;
    if (rows.length === 1 && (only[0] ?? only[1]).path === path) return showNote(master, only, time);
    if (rows.length === 0) return;
    add(shown, "h2", "Changes since then");
    const body = tableOf("", ["File", "Change"]);
    for (const [past, current] of rows.sort((a, b) => ((a[0] ?? a[1]).path < (b[0] ?? b[1]).path ? -1 : 1))) {
      const row = add(body, "tr");
      const name = add(row, "th");
      name.scope = "row";
      const link = add(name, "a", (past ?? current).path);
      link.href = "?" + new URLSearchParams({ at: form.dataset.time, path: (past ?? current).path });
      link.addEventListener("click", (event) => {
        event.preventDefault();
        showNote(master, [past, current], time).catch((error) => { status.textContent = error.message + "."; });
      });
      add(row, "td", past === undefined ? "added" : current === undefined ? "deleted" : "changed");
    }
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    shown.replaceChildren();
    status.textContent = "Decrypting…";
    show(form.querySelector("input").value).catch((error) => { status.textContent = "This vault cannot be shown: " + error.message + "."; });
  });
})();
`;
