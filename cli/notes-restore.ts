import { runJob } from "./job-run.ts";
import { atArg, pathArg, restoreFromHistory } from "./notes-history.ts";
import { supervisorArg } from "./notes-vaults.ts";
import { findStack } from "./stack-client.ts";
import { passphraseArg } from "./vault-passphrase.ts";
import { defineVerb, jsonArg, UsageError } from "./verb.ts";

export const restore = defineVerb({
  name: "notes restore",
  description:
    "Restore a vault, folder or note to a time, or restore vaults from a backup.",
  example: 'hearth notes restore notes daily --at "yesterday 18:00"',
  args: {
    backup: {
      type: "positional",
      required: false,
      description:
        "With --at, a vault; else a backup from `hearth notes backup --list` (default: the newest)",
    },
    ...pathArg,
    ...atArg,
    ...passphraseArg,
    vault: {
      type: "string",
      description: "Only this vault of the backup",
      valueHint: "name",
    },
    as: {
      type: "string",
      description: "Restore under this name, keeping the existing vault",
      valueHint: "name",
    },
    ...jsonArg,
    ...supervisorArg,
  },
  run: async ({ backup, path, at, vault, as, json, supervisor, ...args }) => {
    if (at !== undefined) {
      if (backup === undefined || vault !== undefined || as !== undefined) {
        throw new UsageError(
          '--at requires a vault, for example: hearth notes restore notes --at "yesterday 18:00".',
        );
      }
      return restoreFromHistory({
        vault: backup,
        path,
        at,
        json,
        supervisor,
        passphraseFile: args["passphrase-file"],
      });
    }
    if (path !== undefined) {
      throw new UsageError(
        "a path requires --at: a backup is restored completely, or one --vault of it.",
      );
    }
    return (
      await runJob(
        findStack(supervisor),
        "notes-restore",
        {
          ...(backup === undefined ? {} : { backup }),
          ...(vault === undefined ? {} : { vault }),
          ...(as === undefined ? {} : { as }),
        },
        json,
      )
    ).code;
  },
});
