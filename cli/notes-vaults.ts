import { readVariable } from "../core/environment.ts";
import { sizeWords } from "../core/size.ts";
import { MINUTE_MS, inWords } from "../core/duration.ts";
import type { VaultView } from "../supervisor/vaults/overview.ts";
import {
  isUnreadable,
  unreadableWords,
} from "../supervisor/vaults/unreadable-vault.ts";
import type { Removed } from "../supervisor/vaults/provisioning.ts";
import { askForSetup, setupArgs } from "./setup-answer.ts";
import { findStack } from "./stack-client.ts";
import {
  print,
  printAnswer,
  printJson,
  printTable,
  type Tone,
} from "./terminal.ts";
import { askForName, yesArg } from "./ask-for-name.ts";
import { removalWords } from "./vault-removal.ts";
import { defineVerb, jsonArg } from "./verb.ts";

/** `--url` is the address for devices here, so the supervisor has another option. */
export const supervisorArg = {
  supervisor: {
    type: "string",
    description: "Address of the supervisor (default: the one running here)",
    valueHint: "http://host:4080",
  },
} as const;

export const vaultArg = {
  vault: {
    type: "positional",
    required: true,
    description: "A vault from `hearth notes list`",
  },
} as const;

const SLOW_MS = MINUTE_MS;

const deviceUrl = {
  type: "string",
  description:
    "Address at which devices reach the store, such as a VPN or host name",
  valueHint: "https://notes.example.org",
} as const;

const deviceArgs = {
  mode: {
    type: "string",
    description: "live (as you type) or on-save",
    valueHint: "live|on-save",
  },
  "config-folder": {
    type: "boolean",
    description: "Also sync Obsidian's settings and plugins",
  },
  "hidden-exclude": {
    type: "string",
    description: "Settings to exclude: regular expressions, comma-separated",
    valueHint: "pattern",
  },
  exclude: {
    type: "string",
    description: "Paths to exclude from sync: a regular expression",
    valueHint: "pattern",
  },
  "newer-file": {
    type: "boolean",
    description: "Resolve every conflict in favour of the newer file",
  },
} as const;

interface DeviceArgs {
  readonly mode?: string | undefined;
  readonly "config-folder"?: boolean | undefined;
  readonly "hidden-exclude"?: string | undefined;
  readonly exclude?: string | undefined;
  readonly "newer-file"?: boolean | undefined;
}

/** In the names of the API, without options that were not given. */
function choicesOf(args: DeviceArgs): Readonly<Record<string, unknown>> {
  const hidden = args["hidden-exclude"];
  return {
    ...(args.mode === undefined ? {} : { mode: args.mode }),
    ...(args["config-folder"] === undefined
      ? {}
      : { configFolder: args["config-folder"] }),
    ...(hidden === undefined ? {} : { hiddenPatterns: hidden.split(",") }),
    ...(args.exclude === undefined ? {} : { exclude: [args.exclude] }),
    ...(args["newer-file"] === undefined
      ? {}
      : { newerFile: args["newer-file"] }),
  };
}

/** Never an argument, which other users could read. */
function passphraseGiven(): Readonly<Record<string, string>> {
  const vaultPassphrase = readVariable("HEARTH_VAULT_PASSPHRASE");
  return vaultPassphrase === undefined ? {} : { vaultPassphrase };
}

export const add = defineVerb({
  name: "notes add",
  description: "Create a vault with its own user and show its Setup URI.",
  example: "hearth notes add family --url https://notes.example.org",
  args: {
    vault: {
      type: "positional",
      required: true,
      description: "Name: lower-case letters, digits and _ $ ( ) + -",
    },
    url: deviceUrl,
    e2ee: {
      type: "boolean",
      default: true,
      description: "Encrypt the notes on the devices",
      negativeDescription: "Store the notes unencrypted on the server",
    },
    ...deviceArgs,
    "forget-passphrase": {
      type: "boolean",
      description: "Show the vault's passphrase once without storing it",
    },
    ...setupArgs,
    ...supervisorArg,
  },
  run: async ({ vault, url, e2ee, supervisor, qr, json, ...args }) => {
    await askForSetup({
      supervisor,
      path: "/api/notes",
      body: {
        vault,
        e2ee,
        ...(url === undefined ? {} : { url }),
        ...(args["forget-passphrase"] === true
          ? { forgetPassphrase: true }
          : {}),
        ...choicesOf(args),
      },
      headlineOf: (answer) => `Vault "${vault}" created at ${answer.url}.`,
      qr,
      json,
    });
    return 0;
  },
});

export const setupUri = defineVerb({
  name: "notes setup-uri",
  description: "Show a Setup URI for another device.",
  example: "hearth notes setup-uri notes --url https://notes.example.org",
  args: {
    ...vaultArg,
    url: deviceUrl,
    keep: {
      type: "boolean",
      description: "Store the address as the vault's default",
    },
    ...deviceArgs,
    ...setupArgs,
    ...supervisorArg,
  },
  run: async ({ vault, url, keep, supervisor, qr, json, ...args }) => {
    await askForSetup({
      supervisor,
      path: `/api/notes/${encodeURIComponent(vault)}/setup-uri`,
      body: {
        ...(url === undefined ? {} : { url }),
        ...(keep === true ? { keep } : {}),
        ...passphraseGiven(),
        choices: choicesOf(args),
      },
      headlineOf: (answer) => `Vault ${vault}, at ${answer.url}.`,
      qr,
      json,
    });
    return 0;
  },
});

export const rotate = defineVerb({
  name: "notes rotate",
  description:
    "Change the password of a vault's user; every device needs the new URI.",
  example: "hearth notes rotate notes",
  args: { ...vaultArg, ...setupArgs, ...supervisorArg },
  run: async ({ vault, supervisor, qr, json }) => {
    await askForSetup({
      supervisor,
      path: `/api/notes/${encodeURIComponent(vault)}/rotate`,
      body: passphraseGiven(),
      headlineOf: () =>
        `Vault "${vault}" has a new password. Devices sync again after opening this Setup URI.`,
      qr,
      json,
    });
    return 0;
  },
});

export const list = defineVerb({
  name: "notes list",
  description: "List vaults with state, size and conflicts.",
  example: "hearth notes list",
  args: { ...jsonArg, ...supervisorArg },
  run: async ({ json, supervisor }) => {
    const { vaults } = (await findStack(supervisor).ask(
      "GET",
      "/api/notes",
      SLOW_MS,
    )) as VaultList;
    if (json) {
      printJson(vaults);
    } else if (vaults.length === 0) {
      print("No vaults yet. Run `hearth notes add notes` to create one.");
    } else {
      printTable(
        [
          "vault",
          "state",
          "documents",
          "on disk",
          "reclaimable",
          "conflicts",
          "compacted",
          "address",
        ],
        vaults.map((each) => [
          { text: each.vault, tone: "strong" },
          { text: each.state, tone: TONES[each.state] },
          { text: String(each.documents), right: true },
          { text: sizeWords(each.fileBytes), right: true },
          { text: sizeWords(each.reclaimableBytes), right: true },
          {
            text: String(each.conflicts),
            right: true,
            ...(each.conflicts > 0 ? { tone: "warn" as const } : {}),
          },
          {
            text:
              each.compactedAt === null
                ? "never"
                : `${inWords(Date.now() - each.compactedAt)} ago`,
          },
          { text: each.url ?? "" },
        ]),
        ["reclaimable", "compacted"],
      );
      for (const { vault, state, problems } of vaults) {
        if (isUnreadable(state)) {
          print(unreadableWords(vault, state));
        }
        problems.forEach((problem) => print(problem));
      }
    }
    return vaults.some(
      ({ state, problems }) => TONES[state] === "bad" || problems.length > 0,
    )
      ? 1
      : 0;
  },
});

interface VaultList {
  readonly vaults: readonly VaultView[];
}

const TONES: Readonly<Record<VaultView["state"], Tone>> = {
  open: "ok",
  foreign: "soft",
  closed: "bad",
  damaged: "bad",
  newer: "bad",
  unreadable: "bad",
  gone: "bad",
};

export const remove = defineVerb({
  name: "notes remove",
  description:
    "Delete a vault, its user and its credentials; backups are kept.",
  example: "hearth notes remove old-notes",
  args: {
    ...vaultArg,
    ...yesArg,
    ...jsonArg,
    ...supervisorArg,
  },
  run: async ({ vault, yes, json, supervisor }) => {
    const stack = findStack(supervisor);
    if (yes !== true) {
      const { vaults } = (await stack.ask(
        "GET",
        "/api/notes",
        SLOW_MS,
      )) as VaultList;
      const view = vaults.find((each) => each.vault === vault);
      await askForName(`vault "${vault}"`, vault, removalWords(view));
    }
    const removed = (await stack.ask(
      "POST",
      `/api/notes/${encodeURIComponent(vault)}/remove`,
      SLOW_MS,
      {},
    )) as Removed;
    const deleted = `Vault "${vault}" deleted (${removed.documents} documents).`;
    printAnswer(json, removed, [deleted, ...removed.stays].join("\n"));
    return 0;
  },
});
