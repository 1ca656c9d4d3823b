import { inWords } from "../core/duration.ts";
import { mebibytes } from "../core/size.ts";
import { locateHome } from "../supervisor/home/home.ts";
import { describePod } from "../supervisor/runtimes/kubernetes/pod-words.ts";
import type { Status } from "../supervisor/status.ts";
import { addressArg, findStack, supervisorHere } from "./stack-client.ts";
import { checkCell, serviceCell } from "./states.ts";
import { alignColumns, paint, printAnswer, type Cell } from "./terminal.ts";
import { defineVerb, jsonArg } from "./verb.ts";

export const status = defineVerb({
  name: "status",
  description: "Show the state of everything.",
  example: "hearth status --json",
  args: {
    ...jsonArg,
    ...addressArg,
  },
  run: async ({ json, url }) => {
    const notHere =
      url === undefined &&
      !process.env["HEARTH_URL"] &&
      supervisorHere(locateHome()) === undefined;
    if (notHere) {
      const verdict = "Hearth is not running here.";
      printAnswer(
        json,
        {
          verdict,
          ok: false,
          phase: "stopped",
          services: [],
          checks: [],
          attention: [],
        },
        `${verdict} Run \`hearth up\` to start it.`,
      );
      return 1;
    }
    const answer = (await findStack(url).ask("GET", "/api/status")) as Status;
    printAnswer(json, answer, renderStatus(answer));
    return answer.ok ? 0 : 1;
  },
});

/** The verdict, what needs attention, the tables. */
function renderStatus(status: Status): string {
  const sign = status.attention.some(({ level }) => level === "down")
    ? paint("bad", "✕")
    : status.ok && status.attention.length === 0
      ? paint("ok", "●")
      : paint("warn", "▲");
  const services = serviceRows(status);
  const pods = podRows(status);
  const checks: (readonly Cell[])[] = [
    head("check", "state", "for", "latency", "result"),
    ...status.checks.map((check): readonly Cell[] => [
      { text: check.name, tone: "strong" },
      checkCell(check.state, check.inhibitedBy),
      { text: inWords(status.at - check.since), right: true },
      {
        text: check.latest === null ? "" : `${check.latest.latencyMs} ms`,
        right: true,
      },
      { text: check.latest?.text ?? "" },
    ]),
  ];
  return [
    `${sign} ${paint("strong", status.verdict)}  ${paint("soft", `supervisor up for ${inWords(status.at - status.supervisor.since)}, pid ${status.supervisor.pid}, ${status.supervisor.address}`)}`,
    ...status.attention.flatMap((each) => [
      "",
      `${each.level === "down" ? paint("bad", "✕") : paint("warn", "▲")} ${each.text} ${paint("soft", `(for ${inWords(status.at - each.since)}${each.silenced === null ? "" : `; silenced: ${each.silenced.why}`})`)}`,
      ...[...(each.output === null ? [] : [each.output]), ...each.tried].map(
        (line) => `    ${paint("soft", line)}`,
      ),
      `    ${each.command}`,
    ]),
    ...(status.offsite == null
      ? []
      : [
          "",
          `${paint("soft", "○")} ${status.offsite.text}`,
          `    ${status.offsite.command}`,
        ]),
    ...(services.length > 1 ? ["", ...alignColumns(services)] : []),
    ...(pods.length > 1 ? ["", ...alignColumns(pods)] : []),
    ...(status.checks.length > 0 ? ["", ...alignColumns(checks)] : []),
    ...(status.notices.length > 0
      ? ["", ...status.notices.map((notice) => paint("soft", notice))]
      : []),
  ].join("\n");
}

function serviceRows(status: Status): readonly (readonly Cell[])[] {
  return [
    head("service", "state", "for", "memory", "restarts", "address"),
    ...status.services
      .filter(({ pod }) => pod === undefined)
      .map((service): readonly Cell[] => [
        { text: service.name, tone: "strong" },
        serviceCell(service.state),
        { text: inWords(status.at - service.since), right: true },
        {
          text:
            service.stats === null
              ? ""
              : `${mebibytes(service.stats.memoryBytes)} MiB`,
          right: true,
        },
        { text: String(service.restarts), right: true },
        { text: service.address },
      ]),
  ];
}

function podRows({ services, at }: Status): readonly (readonly Cell[])[] {
  return [
    head("pod", "state", "for", "ready", "restarts", "node", "last end"),
    ...services.flatMap(({ name, state, since, restarts, pod }) => {
      if (pod === undefined) {
        return [];
      }
      const { ready, node, lastEnd } = describePod(pod, at);
      const row: readonly Cell[] = [
        { text: name, tone: "strong" },
        serviceCell(state),
        { text: inWords(at - since), right: true },
        { text: ready, right: true },
        { text: String(restarts), right: true },
        { text: node },
        { text: lastEnd },
      ];
      return [row];
    }),
  ];
}

function head(...titles: readonly string[]): readonly Cell[] {
  return titles.map((text) => ({
    text,
    tone: "soft",
    right: ["for", "memory", "ready", "restarts", "latency"].includes(text),
  }));
}
