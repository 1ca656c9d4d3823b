import { inWords } from "../core/duration.ts";
import type { RunView } from "../supervisor/jobs/runner.ts";
import type {
  ConflictReport,
  Resolved,
} from "../supervisor/vaults/conflicts.ts";
import type { Finding } from "../supervisor/vaults/finding.ts";
import type { SeedAnswer } from "../supervisor/vaults/keeper.ts";
import type { Roster } from "../supervisor/vaults/roster.ts";
import { printTable, runJob } from "./job-run.ts";
import { json, supervisorArg, vaultArg } from "./notes-vaults.ts";
import { findStack } from "./stack-client.ts";
import { paint, print, type Cell, type Tone } from "./terminal.ts";
import { defineVerb, UsageError } from "./verb.ts";

const SLOW_MS = 60_000;
const pathOf = (vault: string, act: string) =>
  `/api/notes/${encodeURIComponent(vault)}/${act}`;

export const devices = defineVerb({
  name: "notes devices",
  description:
    "A vault's devices: last seen, how far behind, outdated plugins.",
  example: "hearth notes devices notes",
  args: { ...vaultArg, json, ...supervisorArg },
  run: async ({ vault, json, supervisor }) => {
    const roster = (await findStack(supervisor).ask(
      "GET",
      pathOf(vault, "devices"),
      SLOW_MS,
    )) as Roster;
    if (json) {
      print(JSON.stringify(roster, null, 2));
    } else if (roster.devices.length === 0) {
      print(
        `No device has synced vault ${vault} yet: \`hearth notes setup-uri ${vault}\` connects one.`,
      );
    } else {
      printTable(
        ["device", "seen", "behind", "plugin", "app", ""],
        roster.devices.map((device) => [
          { text: device.name, tone: "strong" },
          { text: `${inWords(Date.now() - device.lastSeen)} ago` },
          { text: String(device.behind), right: true },
          {
            text: device.pluginVersion,
            ...(device.outdated ? { tone: "warn" as const } : {}),
          },
          { text: device.appVersion },
          {
            text: device.accepted || !roster.locked ? "" : "locked out",
            tone: "warn",
          },
        ]),
      );
      for (const remark of roster.remarks) {
        print(paint("warn", remark));
      }
    }
    return 0;
  },
});

export const conflicts = defineVerb({
  name: "notes conflicts",
  description: "Notes that were edited on two devices at once.",
  example: "hearth notes conflicts notes",
  args: { ...vaultArg, json, ...supervisorArg },
  run: async ({ vault, json, supervisor }) => {
    const report = (await findStack(supervisor).ask(
      "GET",
      pathOf(vault, "conflicts"),
      SLOW_MS,
    )) as ConflictReport;
    if (json) {
      print(JSON.stringify(report, null, 2));
    } else if (report.conflicts.length === 0) {
      print(`No note of vault ${vault} is conflicted.`);
    } else {
      printConflicts(report);
    }
    return 0;
  },
});

function printConflicts({ vault, conflicts, more }: ConflictReport): void {
  printTable(
    ["document", "open for", "version", "written", "shown"],
    conflicts.flatMap((conflict) =>
      conflict.versions.map((version, index): readonly Cell[] => [
        {
          text: index === 0 ? (conflict.path ?? conflict.document) : "",
          tone: "strong",
        },
        {
          text: index === 0 ? inWords(Date.now() - conflict.firstSeen) : "",
        },
        { text: version.rev },
        {
          text:
            version.mtime === null
              ? "(encrypted)"
              : new Date(version.mtime).toLocaleString(),
        },
        {
          text: [
            version.wins ? "on devices" : "",
            version.deleted ? "deleted" : "",
          ]
            .filter((word) => word !== "")
            .join(", "),
        },
      ]),
    ),
  );
  if (more) {
    print(`There are more than these ${conflicts.length}.`);
  }
  print(
    `Open the note on a device and merge it there, or: hearth notes resolve ${vault} <document> --newer | --rev <version>`,
  );
}

export const resolve = defineVerb({
  name: "notes resolve",
  description: "End one conflict: keep the newer version, or the one you name.",
  example: "hearth notes resolve notes daily/2026-11-21.md --newer",
  args: {
    ...vaultArg,
    document: {
      type: "positional",
      required: true,
      description: "Its path, or its id as `hearth notes conflicts` shows it",
    },
    newer: { type: "boolean", description: "Keep the one written last" },
    rev: {
      type: "string",
      description: "Keep this version",
      valueHint: "version",
    },
    json,
    ...supervisorArg,
  },
  run: async ({ vault, document, newer, rev, json, supervisor }) => {
    if ((newer === true) === (rev !== undefined)) {
      throw new UsageError(
        "say which version stays: --newer, or --rev with one that `hearth notes conflicts` shows.",
      );
    }
    const resolved = (await findStack(supervisor).ask(
      "POST",
      pathOf(vault, "resolve"),
      SLOW_MS,
      { document, ...(rev === undefined ? { newer: true } : { rev }) },
    )) as Resolved;
    print(
      json
        ? JSON.stringify(resolved, null, 2)
        : `${resolved.document} is now ${resolved.kept}; ${resolved.removed.join(", ")} ${resolved.removed.length === 1 ? "is" : "are"} gone on every device after its next sync.`,
    );
    return 0;
  },
});

export const restoreSeed = defineVerb({
  name: "notes restore-seed",
  description:
    "After an alarm about a vault's security seed: put the old one back, and let devices in.",
  example: "hearth notes restore-seed notes",
  args: {
    ...vaultArg,
    accept: {
      type: "boolean",
      description:
        "Take the new seed instead; what was written under the old one becomes unreadable",
    },
    json,
    ...supervisorArg,
  },
  run: async ({ vault, accept, json, supervisor }) => {
    const answer = (await findStack(supervisor).ask(
      "POST",
      pathOf(vault, "restore-seed"),
      SLOW_MS,
      accept === true ? { accept } : {},
    )) as SeedAnswer;
    print(
      json
        ? JSON.stringify(answer, null, 2)
        : `The ${answer.did === "accepted" ? "new seed of" : "old seed is back in"} vault ${vault}${answer.did === "accepted" ? " is accepted" : ""}; its devices are let in.`,
    );
    return 0;
  },
});

export const backup = defineVerb({
  name: "notes backup",
  description: "Back up every vault now, or list the backups.",
  example: "hearth notes backup",
  args: {
    list: { type: "boolean", description: "Only list the backups there are" },
    json,
    ...supervisorArg,
  },
  run: async ({ list, json, supervisor }) => {
    const stack = findStack(supervisor);
    if (list !== true) {
      return (await runJob(stack, "notes-backup", {}, json)).code;
    }
    const { directory, backups } = (await stack.ask(
      "GET",
      "/api/notes/backups",
    )) as { readonly directory: string; readonly backups: readonly string[] };
    if (json) {
      print(JSON.stringify({ directory, backups }, null, 2));
    } else if (backups.length === 0) {
      print("There is no backup yet: `hearth notes backup` takes one.");
    } else {
      print(`In ${directory}, newest first:`);
      backups.forEach(print);
    }
    return 0;
  },
});

const marks: Readonly<Record<Finding["state"], readonly [string, Tone]>> = {
  fine: ["●", "ok"],
  warning: ["▲", "warn"],
  bad: ["✕", "bad"],
  skipped: ["–", "soft"],
};

export const doctor = defineVerb({
  name: "notes doctor",
  description:
    "Look at the store as a device does, through its public address.",
  example: "hearth notes doctor notes --url https://notes.example.org",
  args: {
    vault: {
      type: "positional",
      required: false,
      description:
        "A vault that `hearth notes list` shows; the first otherwise",
    },
    url: {
      type: "string",
      description: "The address to look through, if it is not the vault's own",
      valueHint: "https://notes.example.org",
    },
    json,
    ...supervisorArg,
  },
  run: async ({ vault, url, json, supervisor }) => {
    const { run, code } = await runJob(
      findStack(supervisor),
      "notes-doctor",
      {
        ...(vault === undefined ? {} : { vault }),
        ...(url === undefined ? {} : { url }),
      },
      json,
    );
    const findings = findingsOf(run);
    if (!json) {
      for (const { name, state, text } of findings) {
        const [mark, tone] = marks[state];
        print(`${paint(tone, mark)} ${paint("strong", name)}: ${text}`);
      }
    }
    return code === 0 && findings.every(({ state }) => state !== "bad") ? 0 : 1;
  },
});

function findingsOf({ details }: RunView): readonly Finding[] {
  const findings = details?.["findings"];
  return Array.isArray(findings) ? (findings as readonly Finding[]) : [];
}
