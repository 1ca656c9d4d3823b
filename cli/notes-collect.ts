import { sizeWords } from "../core/size.ts";
import { inWords } from "../core/duration.ts";
import {
  findUnused,
  UNUSED_FOR_DAYS,
  type Collection,
} from "../supervisor/vaults/collection.ts";
import { printTable } from "./job-run.ts";
import { json, supervisorArg, vaultArg } from "./notes-vaults.ts";
import { findStack } from "./stack-client.ts";
import { print } from "./terminal.ts";
import { openPast } from "./vault-history.ts";
import { passphraseArg } from "./vault-passphrase.ts";
import { defineVerb } from "./verb.ts";

const SLOW_MS = 300_000;

export const collect = defineVerb({
  name: "notes collect",
  description:
    "Chunks that nothing uses any more: shows what can be freed; --yes frees it.",
  example: "hearth notes collect notes --yes",
  args: {
    ...vaultArg,
    yes: { type: "boolean", description: "Free them" },
    forget: {
      type: "string",
      description:
        "Devices or checkpoints that are no more, separated by commas",
      valueHint: "ids",
    },
    ...passphraseArg,
    json,
    ...supervisorArg,
  },
  run: async ({ vault, yes, forget, json, supervisor, ...args }) => {
    const stack = findStack(supervisor);
    const { source, cipher } = await openPast(
      stack,
      vault,
      args["passphrase-file"],
    );
    const collection = (await stack.ask(
      "POST",
      `/api/notes/${encodeURIComponent(vault)}/collect`,
      SLOW_MS,
      {
        ...(await findUnused(source, cipher)),
        free: yes === true,
        forget: forget?.split(",").filter((id) => id !== "") ?? [],
      },
    )) as Collection;
    if (json === true) {
      print(JSON.stringify(collection, null, 2));
    } else {
      printCollection(vault, collection);
    }
    return 0;
  },
});

const inChunks = ({ count, bytes }: Collection["unused"]): string =>
  `${count} ${count === 1 ? "chunk" : "chunks"} (${sizeWords(bytes)})`;

function printCollection(vault: string, collection: Collection): void {
  const { unused, old, due, freed, waitingFor, notesSeq } = collection;
  print(
    `Vault ${vault}: ${inChunks(unused)} unused: in no version of a note that the store has. Of these, ${inChunks(old)} for ${UNUSED_FOR_DAYS} days.`,
  );
  if (freed.count > 0) {
    print(
      `Freed ${inChunks(freed)}. The file shrinks with the next compaction: \`hearth compact\`.`,
    );
  } else if (due.count > 0) {
    print(
      `Every device has read past ${inChunks(due)} of that age: \`hearth notes collect ${vault} --yes\` frees them.`,
    );
  }
  if (due.count === old.count) {
    return;
  }
  print(
    `The others of that age wait for devices that have not read far enough. Let these sync; if one is no more, --forget its id:`,
  );
  printTable(
    ["id", "", "seen", "behind"],
    waitingFor.map(({ id, kind, name, readUpTo, lastSeen }) => [
      { text: id, tone: "strong" },
      { text: kind === "device" ? name : "checkpoint" },
      {
        text: lastSeen === null ? "" : `${inWords(Date.now() - lastSeen)} ago`,
      },
      { text: String(notesSeq - readUpTo), right: true },
    ]),
  );
}
