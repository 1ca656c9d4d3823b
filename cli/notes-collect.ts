import { sizeWords } from "../core/size.ts";
import { inWords } from "../core/duration.ts";
import {
  findUnused,
  UNUSED_FOR_DAYS,
  type Collection,
} from "../supervisor/vaults/collection.ts";
import { supervisorArg, vaultArg } from "./notes-vaults.ts";
import { findStack } from "./stack-client.ts";
import { print, printJson, printTable } from "./terminal.ts";
import { openPast } from "./vault-history.ts";
import { passphraseArg } from "./vault-passphrase.ts";
import { defineVerb, jsonArg } from "./verb.ts";
import { counted } from "../core/words.ts";

const SLOW_MS = 300_000;

export const collect = defineVerb({
  name: "notes collect",
  description: "Show unused chunks that can be deleted; --yes deletes them.",
  example: "hearth notes collect notes --yes",
  args: {
    ...vaultArg,
    yes: { type: "boolean", description: "Delete them" },
    forget: {
      type: "string",
      description:
        "Devices or checkpoints that no longer exist, separated by commas",
      valueHint: "ids",
    },
    ...passphraseArg,
    ...jsonArg,
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
      printJson(collection);
    } else {
      printCollection(vault, collection);
    }
    return 0;
  },
});

const inChunks = ({ count, bytes }: Collection["unused"]): string =>
  `${counted(count, "chunk")} (${sizeWords(bytes)})`;

function printCollection(vault: string, collection: Collection): void {
  const { unused, old, due, freed, waitingFor, notesSeq } = collection;
  print(
    `Vault ${vault}: ${inChunks(unused)} not used by any stored version of a note; of these, ${inChunks(old)} for ${UNUSED_FOR_DAYS} days.`,
  );
  if (freed.count > 0) {
    print(
      `Deleted ${inChunks(freed)}. The next compaction (\`hearth compact\`) shrinks the file.`,
    );
  } else if (due.count > 0) {
    print(
      `Every device has synced past ${inChunks(due)} of that age. Delete them with \`hearth notes collect ${vault} --yes\`.`,
    );
  }
  if (due.count === old.count) {
    return;
  }
  print(
    `The others of that age are still needed by devices that have not synced. Sync these devices; for one that no longer exists, add --forget with its id:`,
  );
  printTable(
    ["id", "device", "last seen", "behind"],
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
