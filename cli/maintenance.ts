import type { MaintenanceWindow } from "../supervisor/checks/maintenance.ts";
import { inWords } from "../core/duration.ts";
import { timedArgs, listActive, readTimedRequest } from "./timed-request.ts";
import { findStack, type StackClient } from "./stack-client.ts";
import { printAnswer, printJson } from "./terminal.ts";
import { defineVerb, UsageError, type ExitCode } from "./verb.ts";

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
  if (!json) {
    return listActive(
      windows,
      "checks",
      namesOf,
      "No maintenance in progress.",
    );
  }
  printJson(windows);
  return 0;
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
  idOrName: string,
  json: boolean | undefined,
): Promise<ExitCode> {
  const id = await idOf(stack, idOrName);
  const path = `/api/maintenance/${encodeURIComponent(id)}`;
  const ended = (await stack.ask("DELETE", path)) as MaintenanceWindow;
  printAnswer(
    json,
    ended,
    `Maintenance ended: ${namesOf(ended)}. Alerts and restarts resumed.`,
  );
  return 0;
}

/** The id of the only window with this id or these names, as they were typed at its start; of none, what was given. */
async function idOf(stack: StackClient, idOrName: string): Promise<string> {
  const windows = await listWindows(stack);
  const ids = windows
    .filter(
      ({ id, checks }) =>
        id === idOrName || (checks ?? ["all"]).join(",") === idOrName,
    )
    .map(({ id }) => id);
  if (ids.length > 1) {
    throw new UsageError(
      `maintenance "${idOrName}" is in progress ${ids.length} times; end each by its id: ${ids.join(", ")}.`,
    );
  }
  return ids[0] ?? idOrName;
}

function namesOf({ checks }: MaintenanceWindow): string {
  return checks === null ? "everything" : checks.join(", ");
}
