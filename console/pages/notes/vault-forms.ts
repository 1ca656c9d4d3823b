import { z } from "zod";
import { Failure } from "../../../core/failure.ts";
import {
  publicAddress,
  vaultChoices,
} from "../../../supervisor/vaults/plugin-settings.ts";
import { checkVaultName } from "../../../supervisor/vaults/vault-names.ts";
import type { Field } from "../field.ts";

/** Additional questions of the forms of a vault. */
interface AlsoAsked {
  /** The vault passphrase, where it is not stored here. */
  readonly passphrase: boolean;
}

const MAX_LENGTH = 2000;
const tick = z
  .literal("true")
  .optional()
  .transform((value) => value === "true");
const text = z
  .string()
  .max(MAX_LENGTH, `must be at most ${MAX_LENGTH} characters`);
/** The value that `check` returns; the message of its Failure where it throws. */
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
  vault: z.string("name is required").pipe(checked(checkVaultName)),
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
  note: "Shown when the vault was created; not stored here.",
};
const ADDRESS_NOTE =
  "Where devices reach the notes store, such as a VPN or host name. Phones require https.";

export function addFields(): readonly Field[] {
  return [
    {
      name: "vault",
      kind: "text",
      label: "Name",
      needed: true,
      note: "Up to 100 lower-case letters, digits and _ $ ( ) + -, starting with a letter.",
    },
    {
      name: "url",
      kind: "text",
      label: "Address for devices",
      note: `${ADDRESS_NOTE} Leave empty for the default.`,
    },
    {
      name: "e2ee",
      kind: "tick",
      value: "true",
      label: "Encrypt the notes on the devices",
      note: "Otherwise notes are readable on the server.",
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
      label: "Also sync Obsidian settings and plugins",
    },
    {
      name: "newerFile",
      kind: "tick",
      label: "Resolve conflicts with the newer file",
    },
    {
      name: "exclude",
      kind: "lines",
      label: "Exclude",
      note: "Paths to exclude from sync, one regular expression per line.",
    },
    {
      name: "forgetPassphrase",
      kind: "tick",
      label: "Do not store the vault passphrase",
      note: "Shown once; each new Setup URI asks for it.",
    },
  ];
}

export function setupFields({ passphrase }: AlsoAsked): readonly Field[] {
  return [
    {
      name: "url",
      kind: "text",
      label: "Address for devices",
      note: `${ADDRESS_NOTE} Leave empty for the vault's own.`,
    },
    {
      name: "keep",
      kind: "tick",
      label: "Use this address for the vault from now on",
    },
    {
      name: "mode",
      kind: "choice",
      label: "Sync",
      values: [
        ["", "same as the other devices"],
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
