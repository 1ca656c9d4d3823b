import type { MaintenanceWindow } from "../checks/maintenance.ts";
import { inWords, parseDuration } from "../duration.ts";
import { addressArg, findStack, type StackClient } from "./stack-client.ts";
import { alignColumns, print, type Cell } from "./terminal.ts";
import { defineVerb, UsageError, type ExitCode } from "./verb.ts";

const example = 'hearth maintenance gateway 2h --why "new disk"';

export const maintenance = defineVerb({
  name: "maintenance",
  description: "Blame and heal nothing for a while; looking goes on.",
  example,
  args: {
    name: {
      type: "positional",
      required: false,
      description: "A check, several with commas between them, or all",
    },
    duration: {
      type: "positional",
      required: false,
      description: "For how long: 30m, 2h, 7d",
    },
    why: {
      type: "string",
      description: "The reason, for whoever looks next",
      valueHint: "text",
    },
    list: { type: "boolean", description: "Show what is open" },
    end: {
      type: "string",
      description: "End one before its time",
      valueHint: "id",
    },
    json: { type: "boolean", description: "Print it as JSON" },
    ...addressArg,
  },
  run: async ({ name, duration, why, list, end, json, url }) => {
    if (end !== undefined) return endOne(findStack(url), end, json);
    if (list) return show(findStack(url), json);
    if (name === undefined || duration === undefined || why === undefined)
      throw new UsageError(
        `\`hearth maintenance\` needs a check (or all), how long, and --why, for example: ${example}`,
      );
    if (parseDuration(duration) === undefined)
      throw new UsageError(
        `"${duration}" is no duration: write 30m, 2h or 7d.`,
      );
    const window = (await findStack(url).ask(
      "POST",
      "/api/maintenance",
      undefined,
      {
        ...(name === "all" ? {} : { checks: name.split(",") }),
        for: duration,
        why,
      },
    )) as MaintenanceWindow;
    print(
      json
        ? JSON.stringify(window, null, 2)
        : `In maintenance for ${inWords(window.until - window.from)}: ${namesOf(window)}. \`hearth maintenance --end ${window.id}\` ends it before.`,
    );
    return 0;
  },
});

async function show(
  stack: StackClient,
  json: boolean | undefined,
): Promise<ExitCode> {
  const { windows } = (await stack.ask("GET", "/api/maintenance")) as {
    readonly windows: readonly MaintenanceWindow[];
  };
  if (json) print(JSON.stringify(windows, null, 2));
  else if (windows.length === 0)
    print("Nothing is in maintenance: everything is judged.");
  else {
    const head = ["id", "checks", "for another", "why"].map((text): Cell => ({
      text,
      tone: "soft",
    }));
    const rows = windows.map((window): readonly Cell[] => [
      { text: window.id },
      { text: namesOf(window), tone: "strong" },
      { text: inWords(window.until - Date.now()) },
      { text: window.why },
    ]);
    alignColumns([head, ...rows]).forEach(print);
  }
  return 0;
}

async function endOne(
  stack: StackClient,
  id: string,
  json: boolean | undefined,
): Promise<ExitCode> {
  const path = `/api/maintenance/${encodeURIComponent(id)}`;
  const ended = (await stack.ask("DELETE", path)) as MaintenanceWindow;
  print(
    json
      ? JSON.stringify(ended, null, 2)
      : `Ended: ${namesOf(ended)} may be blamed and healed again.`,
  );
  return 0;
}

function namesOf({ checks }: MaintenanceWindow): string {
  return checks === null ? "everything" : checks.join(", ");
}
