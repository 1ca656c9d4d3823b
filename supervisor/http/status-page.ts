import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { CheckState } from "../checks/state.ts";
import { inWords } from "../duration.ts";
import { projectRoot } from "../embedded/home.ts";
import type { ServiceState } from "../runtime.ts";
import type { Status } from "../status.ts";

type Look = "ok" | "warn" | "bad" | "rest";

const shapes: Readonly<Record<Look, string>> = {
  ok: '<circle cx="8" cy="8" r="7"/>',
  warn: '<path d="M8 1 15.5 15H.5z"/>',
  bad: '<path d="M3 1 8 6l5-5 2 2-5 5 5 5-2 2-5-5-5 5-2-2 5-5-5-5z"/>',
  rest: '<path d="M3 2h4v12H3zM9 2h4v12H9z"/>',
};
const signs: Readonly<Record<Look, string>> = {
  ok: "●",
  warn: "▲",
  bad: "✕",
  rest: "‖",
};

let stylesheet: string | undefined;

/** The status page: one self-contained file that works without script. */
export function renderStatusPage(status: Status): string {
  stylesheet ??= readFileSync(join(projectRoot, "look", "hearth.css"), "utf8");
  const look = lookOfAll(status);
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="refresh" content="15">
<title>${signs[look]} ${escape(status.verdict)} · Hearth</title><style>${stylesheet}</style>
<header class="top"><a class="brand" href="/">Hearth</a></header>
<main>
<section class="verdict"><span class="mark ${look}">${shape(look)}</span><h1>${escape(status.verdict)}</h1><p>${status.services.length} services on this machine · supervisor up for ${inWords(status.at - status.supervisor.since)} · <time>${new Date(status.at).toLocaleString()}</time></p></section>
${attention(status)}
<h2>Services</h2>
<div class="card scroll"><table><thead><tr><th>Service</th><th>State</th><th class="num">For</th><th class="num">Memory</th><th class="num">Restarts</th><th>Address</th></tr></thead><tbody>
${status.services
  .map(
    (service) =>
      `<tr><th scope="row"><b>${escape(service.name)}</b></th><td>${state(lookOfService(service.state), service.state)}</td><td class="num">${inWords(status.at - service.since)}</td><td class="num">${service.stats === null ? "" : `${Math.round(service.stats.memoryBytes / 1024 / 1024)} MiB`}</td><td class="num">${service.restarts}</td><td><code>${escape(service.address)}</code></td></tr>`,
  )
  .join("\n")}
</tbody></table></div>
<h2>Checks</h2>
<div class="card scroll"><table><thead><tr><th>Check</th><th>State</th><th class="num">For</th><th class="num">Took</th><th>Seen</th></tr></thead><tbody>
${status.checks
  .map(
    (check) =>
      `<tr><th scope="row"><b>${escape(check.name)}</b></th><td>${check.inhibitedBy === null ? state(lookOfCheck(check.state), check.state) : state("rest", `waits for ${check.inhibitedBy}`)}</td><td class="num">${inWords(status.at - check.since)}</td><td class="num">${check.latest === null ? "" : `${check.latest.latencyMs} ms`}</td><td>${escape(check.latest?.text ?? "")}</td></tr>`,
  )
  .join("\n")}
</tbody></table></div>
</main>
<footer><span>Hearth supervisor, pid ${status.supervisor.pid}</span><span><a href="/api/status">the same as JSON</a></span></footer>
</html>
`;
}

function attention(status: Status): string {
  if (status.attention.length === 0)
    return status.ok ? '<p class="soft">Nothing needs you.</p>' : "";
  const rows = status.attention.map(
    (each) =>
      `<div class="row${each.level === "warning" ? " warned" : ""}"><p><b>${escape(each.text)}</b></p><small>since ${inWords(status.at - each.since)}</small><pre>${escape(each.command)}</pre></div>`,
  );
  return `<h2>Needs attention</h2>\n<div class="card attention">${rows.join("\n")}</div>`;
}

function lookOfAll(status: Status): Look {
  if (status.ok) return "ok";
  return status.attention.some(({ level }) => level === "down")
    ? "bad"
    : "warn";
}

function lookOfService(service: ServiceState): Look {
  switch (service) {
    case "running":
      return "ok";
    case "waiting":
    case "starting":
    case "unknown":
      return "warn";
    case "backing-off":
    case "gave-up":
    case "ended":
    case "absent":
      return "bad";
    case "stopping":
    case "stopped":
      return "rest";
  }
}

function lookOfCheck(check: CheckState): Look {
  switch (check) {
    case "up":
      return "ok";
    case "new":
      return "rest";
    case "pending":
      return "warn";
    case "down":
      return "bad";
  }
}

function state(look: Look, word: string): string {
  return `<span class="state ${look}">${shape(look)} ${escape(word)}</span>`;
}

function shape(look: Look): string {
  return `<svg viewBox="0 0 16 16" fill="currentColor" aria-hidden="true">${shapes[look]}</svg>`;
}

function escape(text: string): string {
  const named: Readonly<Record<string, string>> = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
  };
  return text.replace(/[&<>"]/g, (sign) => named[sign] ?? sign);
}
