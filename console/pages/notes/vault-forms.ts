import { z } from "zod";
import { Failure } from "../../../core/failure.ts";
import {
  publicAddress,
  vaultChoices,
} from "../../../supervisor/vaults/plugin-settings.ts";
import { checkVaultName } from "../../../supervisor/vaults/vault-names.ts";
import type { Field } from "../field.ts";

/** What the forms about a vault must ask for besides. */
export interface AlsoAsked {
  /** The vault's, where it is not kept here. */
  readonly passphrase: boolean;
}

const LONGEST = 2000;
const tick = z
  .literal("true")
  .optional()
  .transform((value) => value === "true");
const text = z.string().max(LONGEST, `must not be longer than ${LONGEST}`);
/** As `check` gives it; its own sentence where it throws. */
const checked = (check: (text: string) => string) =>
  text.transform((value, context) => {
    try {
      return check(value.trim());
    } catch (error) {
      if (!(error instanceof Failure)) {
        throw error;
      }
      context.addIssue({ code: "custom", message: error.sentences.join(" ") });
      return z.NEVER;
    }
  });
const vaultPassphrase = text.optional();
const url = checked(publicAddress).optional();

export const addForm = z.object({
  vault: z.string("give it a name").pipe(checked(checkVaultName)),
  url,
  e2ee: tick,
  mode: vaultChoices.shape.mode,
  configFolder: tick,
  newerFile: tick,
  exclude: text
    .optional()
    .transform((value) =>
      (value ?? "")
        .split(/\r?\n/)
        .map((line) => line.trim())
        .filter((line) => line !== ""),
    )
    .pipe(vaultChoices.shape.exclude.unwrap()),
  forgetPassphrase: tick,
});

export const setupForm = z.object({
  url,
  keep: tick,
  mode: vaultChoices.shape.mode.unwrap().optional(),
  vaultPassphrase,
});

export const rotateForm = z.object({ vaultPassphrase });

const passphraseField: Field = {
  name: "vaultPassphrase",
  kind: "secret",
  label: "Vault passphrase",

  needed: true,
  note: "It was shown when the vault was made, and is not kept here.",
};
const ADDRESS_NOTE =
  "Where devices reach the notes store, such as a VPN or host name. Phones need https.";

export function addFields(): readonly Field[] {
  return [
    {
      name: "vault",
      kind: "text",
      label: "Name",
      needed: true,
      note: "Lower-case letters, digits and _ $ ( ) + -, a letter first, at most 100.",
    },
    {
      name: "url",
      kind: "text",
      label: "Address for devices",
      note: `${ADDRESS_NOTE} The usual one when left empty.`,
    },
    {
      name: "e2ee",
      kind: "tick",
      value: "true",
      label: "Encrypt the notes on the devices",
      note: "Without it they are readable on the server.",
    },
    {
      name: "mode",
      kind: "choice",
      label: "Sync",
      values: [
        ["live", "as you type"],
        ["on-save", "when a note is saved or opened"],
      ],
    },
    {
      name: "configFolder",
      kind: "tick",
      label: "Sync Obsidian's settings and plugins, too",
    },
    {
      name: "newerFile",
      kind: "tick",
      label: "Let the newer file win every conflict",
    },
    {
      name: "exclude",
      kind: "lines",
      label: "Leave out",
      note: "Paths that are not synced: a regular expression on each line.",
    },
    {
      name: "forgetPassphrase",
      kind: "tick",
      label: "Keep the vault's passphrase nowhere",
      note: "It is shown once; every further Setup URI asks for it.",
    },
  ];
}

export function setupFields({ passphrase }: AlsoAsked): readonly Field[] {
  return [
    {
      name: "url",
      kind: "text",
      label: "Address for devices",
      note: `${ADDRESS_NOTE} The vault's own when left empty.`,
    },
    {
      name: "keep",
      kind: "tick",
      label: "Make that address the vault's own",
    },
    {
      name: "mode",
      kind: "choice",
      label: "Sync",
      values: [
        ["", "as the vault's other devices"],
        ["live", "as you type"],
        ["on-save", "when a note is saved or opened"],
      ],
    },
    ...rotateFields({ passphrase }),
  ];
}

export function rotateFields({ passphrase }: AlsoAsked): readonly Field[] {
  return passphrase ? [passphraseField] : [];
}
