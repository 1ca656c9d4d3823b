import { createInterface } from "node:readline/promises";
import { inWords } from "../duration.ts";
import { readVariable } from "../environment.ts";
import { Failure } from "../failure.ts";
import { listOf } from "./backup.ts";
import { runJob } from "./job-run.ts";
import { addressArg, findStack } from "./stack-client.ts";
import { print } from "./terminal.ts";
import { defineVerb } from "./verb.ts";

export const restore = defineVerb({
  name: "restore",
  description:
    "Put a backup of Postgres in place of an empty database, and bring the gateways back.",
  example: "hearth restore 2026-11-21T030000Z",
  args: {
    name: {
      type: "positional",
      required: false,
      description: "A backup that `hearth backup list` shows; else the newest",
    },
    "set-aside": {
      type: "boolean",
      description: "Keep a database that is not empty under another name",
    },
    yes: { type: "boolean", description: "Do not ask" },
    json: { type: "boolean", description: "Print it as JSON" },
    ...addressArg,
  },
  run: async ({ name, "set-aside": setAside, yes, json, url }) => {
    const stack = findStack(url);
    const known = (await listOf(stack)).filter(
      ({ kind }) => kind === "postgres",
    );
    const chosen =
      name === undefined
        ? known[0]
        : known.find((backup) => backup.name === name);
    if (chosen === undefined)
      throw new Failure(
        name === undefined
          ? "there is no backup of Postgres here: `hearth backup fetch` brings one from the other host."
          : `there is no backup "${name}": \`hearth backup list\` shows what there is.`,
      );
    const age = inWords(Date.now() - chosen.takenAt);
    if (yes !== true)
      await confirm(
        `Put ${chosen.name} (${age} old) in place of ${setAside === true ? "the database, which is kept under another name" : "the empty database"}, and restart the gateways?`,
      );
    else if (json !== true) print(`Restoring ${chosen.name}, ${age} old.`);
    const databaseUrl = readVariable("RESTORE_DATABASE_URL");
    const { code } = await runJob(
      stack,
      "restore",
      {
        backup: chosen.name,
        ...(setAside === true ? { setAside } : {}),
        ...(databaseUrl === undefined ? {} : { databaseUrl }),
      },
      json,
    );
    return code;
  },
});

/** Throws a Failure unless a person at a terminal says yes. */
async function confirm(question: string): Promise<void> {
  if (!process.stdin.isTTY)
    throw new Failure(
      "a restore asks before it begins, and there is nobody to ask: add --yes.",
    );
  const terminal = createInterface({
    input: process.stdin,
    output: process.stderr,
  });
  const answer = await terminal.question(`${question} [y/N] `);
  terminal.close();
  if (!/^y(es)?$/i.test(answer.trim()))
    throw new Failure("nothing was restored.");
}
