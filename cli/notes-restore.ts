import { runJob } from "./job-run.ts";
import { atArg, pathArg, restoreFromHistory } from "./notes-history.ts";
import { json, supervisorArg } from "./notes-vaults.ts";
import { findStack } from "./stack-client.ts";
import { passphraseArg } from "./vault-passphrase.ts";
import { defineVerb, UsageError } from "./verb.ts";

export const restore = defineVerb({
  name: "notes restore",
  description:
    "Make a vault, a folder or a note what it was, or put vaults of a backup back.",
  example: 'hearth notes restore notes daily --at "yesterday 18:00"',
  args: {
    backup: {
      type: "positional",
      required: false,
      description:
        "With --at a vault; else a backup that `hearth notes backup --list` shows, the newest otherwise",
    },
    ...pathArg,
    ...atArg,
    ...passphraseArg,
    vault: {
      type: "string",
      description: "This vault of the backup alone",
      valueHint: "name",
    },
    as: {
      type: "string",
      description: "Under this name, beside the one that is there",
      valueHint: "name",
    },
    json,
    ...supervisorArg,
  },
  run: async ({ backup, path, at, vault, as, json, supervisor, ...args }) => {
    if (at !== undefined) {
      if (backup === undefined || vault !== undefined || as !== undefined) {
        throw new UsageError(
          'with --at, name the vault first: hearth notes restore notes --at "yesterday 18:00".',
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
        "name the time with --at: a backup is restored as a whole, or a --vault of it.",
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
