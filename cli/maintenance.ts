import type { MaintenanceWindow } from "../supervisor/checks/maintenance.ts";
import { inWords } from "../core/duration.ts";
import { timedArgs, listActive, readTimedRequest } from "./timed-request.ts";
import { findStack, type StackClient } from "./stack-client.ts";
import { printAnswer } from "./terminal.ts";
import { defineVerb, type ExitCode } from "./verb.ts";

const EXAMPLE = 'hearth maintenance gateway 2h --why "new disk"';

export const maintenance = defineVerb({
  name: "maintenance",
  description: "Keep checking; suspend alerts and restarts.",
  example: EXAMPLE,
  args: {
    name: {
      type: "positional",
      required: false,
      description: "A check, several separated by commas, or all",
    },
    ...timedArgs,
    list: { type: "boolean", description: "List maintenance in progress" },
    end: {
      type: "string",
      description: "End maintenance early",
      valueHint: "name or id",
    },
  },
  run: async ({ name, duration, why, list, end, json, url }) => {
    if (end !== undefined) {
      return endOne(findStack(url), end, json);
    }
    if (list) {
      return show(findStack(url), json);
    }
    const wanted = readTimedRequest(
      { name, duration, why },
      `\`hearth maintenance\` requires a check (or all), a duration and --why, for example: ${EXAMPLE}`,
    );
    const window = (await findStack(url).ask(
      "POST",
      "/api/maintenance",
      undefined,
      {
        ...(wanted.name === "all" ? {} : { checks: wanted.name.split(",") }),
        for: wanted.duration,
        why: wanted.why,
      },
    )) as MaintenanceWindow;
    printAnswer(
      json,
      window,
      `In maintenance for ${inWords(window.until - window.from)}: ${namesOf(window)}. End it early with \`hearth maintenance --end ${window.id}\`.`,
    );
    return 0;
  },
});

async function show(
  stack: StackClient,
  json: boolean | undefined,
): Promise<ExitCode> {
  const windows = await listWindows(stack);
  return listActive(
    json,
    windows,
    "checks",
    namesOf,
    "No maintenance in progress.",
  );
}

async function listWindows(
  stack: StackClient,
): Promise<readonly MaintenanceWindow[]> {
  const { windows } = (await stack.ask("GET", "/api/maintenance")) as {
    readonly windows: readonly MaintenanceWindow[];
  };
  return windows;
}

async function endOne(
  stack: StackClient,
  idOrChecks: string,
  json: boolean | undefined,
): Promise<ExitCode> {
  const path = `/api/maintenance/${encodeURIComponent(idOrChecks)}`;
  const { ended } = (await stack.ask("DELETE", path)) as {
    readonly ended: readonly MaintenanceWindow[];
  };
  const others = (await listWindows(stack)).filter((window) =>
    ended.some((each) => overlap(each, window)),
  );
  printAnswer(
    json,
    ended,
    `Maintenance ended: ${ended.map(namesOf).join("; ")}. ${
      others.length === 0
        ? "Alerts and restarts resumed."
        : `Still in maintenance: ${others.map(describeOther).join("; ")}.`
    }`,
  );
  return 0;
}

function overlap(a: MaintenanceWindow, b: MaintenanceWindow): boolean {
  const { checks } = b;
  return (
    a.checks === null ||
    checks === null ||
    a.checks.some((each) => checks.includes(each))
  );
}

function describeOther(window: MaintenanceWindow): string {
  return `${namesOf(window)} for ${inWords(window.until - Date.now())} (${window.id})`;
}

function namesOf({ checks }: MaintenanceWindow): string {
  return checks === null ? "everything" : checks.join(", ");
}
