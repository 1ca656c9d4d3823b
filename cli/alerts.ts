import { afterSubject } from "../supervisor/alerts/alarm.ts";
import type { ActiveAlarm } from "../supervisor/alerts/alerting.ts";
import type { SinkState } from "../supervisor/alerts/dispatcher.ts";
import type { Silence } from "../supervisor/alerts/silence.ts";
import { unknownName } from "../core/config/problem.ts";
import { MINUTE_MS, inWords } from "../core/duration.ts";
import { addressArg, findStack, type StackClient } from "./stack-client.ts";
import {
  alignColumns,
  paint,
  print,
  printJson,
  type Cell,
} from "./terminal.ts";
import { defineVerb, jsonArg, UsageError, type ExitCode } from "./verb.ts";

const TEST_TIMEOUT_MS = MINUTE_MS;

export const alerts = defineVerb({
  name: "alerts",
  description:
    "Show active alarms and notification channels; `alerts test` sends a message through each channel.",
  example: "hearth alerts test",
  args: {
    action: {
      type: "positional",
      required: false,
      description: "test: send a test message to every channel in notify:",
    },
    test: { type: "boolean", description: "Same as `hearth alerts test`" },
    ...jsonArg,
    ...addressArg,
  },
  run: async ({ action, test, json, url }) => {
    if (action !== undefined && action !== "test") {
      throw new UsageError(
        `${unknownName("action", action, ["test"])}. Run \`hearth alerts --help\` for details.`,
      );
    }
    return test || action === "test"
      ? sendTest(findStack(url), json)
      : show(findStack(url), json);
  },
});

async function show(
  stack: StackClient,
  json: boolean | undefined,
): Promise<ExitCode> {
  const answer = (await stack.ask("GET", "/api/alerts")) as {
    readonly alarms: readonly ActiveAlarm[];
    readonly sinks: readonly SinkState[];
    readonly silences: readonly Silence[];
  };
  if (json) {
    printJson(answer);
  } else {
    print(answer.alarms.length === 0 ? "No active alarms." : "");
    for (const alarm of answer.alarms) {
      describeAlarm(alarm).forEach(print);
    }
    print("");
    printSinks(answer.sinks);
  }
  return answer.alarms.some(({ level }) => level === "down") ? 1 : 0;
}

function describeAlarm(alarm: ActiveAlarm): readonly string[] {
  const sign = alarm.level === "down" ? paint("bad", "✕") : paint("warn", "▲");
  const silenced =
    alarm.silence === null
      ? ""
      : paint("soft", ` (silenced: ${alarm.silence.why})`);
  return [
    `${sign} ${paint("strong", alarm.subject)}${afterSubject(alarm)} ${paint("soft", `(for ${inWords(Date.now() - alarm.since)})`)}${silenced}`,
    ...(alarm.output === undefined ? [] : [`    ${alarm.output}`]),
    `    ${alarm.command}`,
  ];
}

async function sendTest(
  stack: StackClient,
  json: boolean | undefined,
): Promise<ExitCode> {
  const { sinks } = (await stack.ask(
    "POST",
    "/api/alerts/test",
    TEST_TIMEOUT_MS,
  )) as { readonly sinks: readonly SinkState[] };
  if (json) {
    printJson(sinks);
  } else {
    printSinks(sinks);
  }
  return sinks.length > 0 && sinks.every(({ trouble }) => trouble === null)
    ? 0
    : 1;
}

function printSinks(sinks: readonly SinkState[]): void {
  if (sinks.length === 0) {
    print(
      "Notifications are not configured. Run `hearth config` for how `notify:` sets up a webhook, mail, ntfy or Slack.",
    );
    return;
  }
  const rows = sinks.map((sink): readonly Cell[] => [
    sink.trouble === null
      ? { text: "● works", tone: "ok" }
      : { text: "✕ fails", tone: "bad" },
    { text: sink.name, tone: "strong" },
    {
      text:
        sink.deliveredAt === null
          ? "no deliveries yet"
          : `delivered ${inWords(Date.now() - sink.deliveredAt)} ago`,
    },
    {
      text: [
        sink.waiting > 0 ? `${sink.waiting} waiting` : "",
        sink.trouble ?? "",
      ]
        .filter((part) => part !== "")
        .join(": "),
    },
  ]);
  alignColumns(rows).forEach(print);
}
