import { MINUTE_MS, inWords } from "../core/duration.ts";
import type { RunView } from "../supervisor/jobs/runner.ts";
import type {
  ConflictReport,
  Resolved,
} from "../supervisor/vaults/conflicts.ts";
import type { Finding } from "../supervisor/vaults/finding.ts";
import type { SeedAnswer } from "../supervisor/vaults/vault-inspector.ts";
import type { Roster } from "../supervisor/vaults/roster.ts";
import { runJob } from "./job-run.ts";
import { inZone } from "./local-time.ts";
import { supervisorArg, vaultArg } from "./notes-vaults.ts";
import { findStack } from "./stack-client.ts";
import {
  paint,
  print,
  printAnswer,
  printJson,
  printTable,
  type Cell,
  type Tone,
} from "./terminal.ts";
import { defineVerb, jsonArg, UsageError } from "./verb.ts";

const SLOW_MS = MINUTE_MS;
const pathOf = (vault: string, act: string) =>
  `/api/notes/${encodeURIComponent(vault)}/${act}`;

export const devices = defineVerb({
  name: "notes devices",
  description:
    "Show a vault's devices: last connection, changes since, plugin versions.",
  example: "hearth notes devices notes",
  args: { ...vaultArg, ...jsonArg, ...supervisorArg },
  run: async ({ vault, json, supervisor }) => {
    const roster = (await findStack(supervisor).ask(
      "GET",
      pathOf(vault, "devices"),
      SLOW_MS,
    )) as Roster;
    if (json) {
      printJson(roster);
    } else if (roster.devices.length === 0) {
      print(
        `No device has synced vault ${vault} yet. Run \`hearth notes setup-uri ${vault}\` to connect one.`,
      );
    } else {
      printTable(
        ["device", "last seen", "changes since", "plugin", "app", ""],
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
  description: "List notes that were edited on two devices at once.",
  example: "hearth notes conflicts notes",
  args: { ...vaultArg, ...jsonArg, ...supervisorArg },
  run: async ({ vault, json, supervisor }) => {
    const report = (await findStack(supervisor).ask(
      "GET",
      pathOf(vault, "conflicts"),
      SLOW_MS,
    )) as ConflictReport;
    if (json) {
      printJson(report);
    } else if (report.conflicts.length === 0) {
      print(`No conflicts in vault ${vault}.`);
    } else {
      printConflicts(report);
    }
    return 0;
  },
});

function printConflicts({ vault, conflicts, more }: ConflictReport): void {
  printTable(
    ["document", "open for", "version", "modified", "state"],
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
          text: version.mtime === null ? "(encrypted)" : inZone(version.mtime),
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
    print(`More than ${conflicts.length} conflicts; only these are shown.`);
  }
  print(
    `Merge the note on a device, or run: hearth notes resolve ${vault} <document> --newer | --both | --rev <version>`,
  );
}

export const resolve = defineVerb({
  name: "notes resolve",
  description:
    "Resolve one conflict: keep the newer version, a given one, or both as two notes.",
  example: "hearth notes resolve notes daily/2026-11-21.md --newer",
  args: {
    ...vaultArg,
    document: {
      type: "positional",
      required: true,
      description: "Path or id of the note, from `hearth notes conflicts`",
    },
    newer: { type: "boolean", description: "Keep the version modified last" },
    both: {
      type: "boolean",
      description: "Keep all versions, the others as notes beside it",
    },
    rev: {
      type: "string",
      description: "Keep this version",
      valueHint: "version",
    },
    ...jsonArg,
    ...supervisorArg,
  },
  run: async ({ vault, document, newer, both, rev, json, supervisor }) => {
    const choices = [newer === true, both === true, rev !== undefined];
    if (choices.filter(Boolean).length !== 1) {
      throw new UsageError(
        "choose the version to keep: --newer, --both, or --rev with one from `hearth notes conflicts`.",
      );
    }
    const resolved = (await findStack(supervisor).ask(
      "POST",
      pathOf(vault, "resolve"),
      SLOW_MS,
      {
        document,
        ...(rev !== undefined
          ? { rev }
          : both === true
            ? { both: true }
            : { newer: true }),
      },
    )) as Resolved;
    printAnswer(
      json,
      resolved,
      `Kept ${resolved.kept} of ${resolved.document}; ${resolved.copies.length > 0 ? `the other versions are now ${resolved.copies.join(", ")}` : `${resolved.removed.join(", ")} will be removed from every device with its next sync`}.`,
    );
    return 0;
  },
});

export const restoreSeed = defineVerb({
  name: "notes restore-seed",
  description:
    "After an alarm about a vault's security seed: restore the old seed and unlock devices.",
  example: "hearth notes restore-seed notes",
  args: {
    ...vaultArg,
    accept: {
      type: "boolean",
      description:
        "Accept the new seed instead; data encrypted under the old one becomes unreadable",
    },
    ...jsonArg,
    ...supervisorArg,
  },
  run: async ({ vault, accept, json, supervisor }) => {
    const answer = (await findStack(supervisor).ask(
      "POST",
      pathOf(vault, "restore-seed"),
      SLOW_MS,
      accept === true ? { accept } : {},
    )) as SeedAnswer;
    printAnswer(
      json,
      answer,
      `${answer.did === "accepted" ? "New seed accepted for" : "Old seed restored in"} vault ${vault}; its devices are unlocked.`,
    );
    return 0;
  },
});

export const backup = defineVerb({
  name: "notes backup",
  description: "Back up every vault now, or list the backups.",
  example: "hearth notes backup",
  args: {
    list: { type: "boolean", description: "List the backups instead" },
    ...jsonArg,
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
    printAnswer(
      json,
      { directory, backups },
      backups.length === 0
        ? "No backups yet. Run `hearth notes backup` to create one."
        : [`In ${directory}, newest first:`, ...backups].join("\n"),
    );
    return 0;
  },
});

const MARKS: Readonly<Record<Finding["state"], readonly [string, Tone]>> = {
  fine: ["●", "ok"],
  warning: ["▲", "warn"],
  bad: ["✕", "bad"],
  skipped: ["–", "soft"],
};

export const doctor = defineVerb({
  name: "notes doctor",
  description:
    "Check the store as a device sees it, through its public address.",
  example: "hearth notes doctor notes --url https://notes.example.org",
  args: {
    vault: {
      type: "positional",
      required: false,
      description: "A vault from `hearth notes list` (default: the first)",
    },
    url: {
      type: "string",
      description: "Address to check (default: the vault's)",
      valueHint: "https://notes.example.org",
    },
    ...jsonArg,
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
        const [mark, tone] = MARKS[state];
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
