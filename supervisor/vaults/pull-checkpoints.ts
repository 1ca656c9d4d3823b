import { z } from "zod";
import type { CouchAsk } from "./couch.ts";
import { sequenceNumber, type Database } from "./database.ts";

/** Of the ids of the checkpoints' documents. */
export const CHECKPOINT_PREFIX = "_local/";
const pullCheckpoint = z.looseObject({
  replicator: z.literal("pouchdb"),
  // A device's own sequences are numbers, the store's are strings.
  last_seq: z.string(),
});

/** How far a device has read, as it records on the server. Nothing names the device. */
interface PullCheckpoint {
  /** Without the prefix `_local/`. */
  readonly id: string;
  readonly readUpTo: number;
}

/** The replication checkpoints of all devices that have pulled from the vault, including those of devices that no longer exist. */
export async function readPullCheckpoints(
  database: Database,
  options?: CouchAsk,
): Promise<readonly PullCheckpoint[]> {
  const documents = await database.locals(options);
  return documents.flatMap(({ id, doc }) => {
    const { success, data } = pullCheckpoint.safeParse(doc);
    return success
      ? [
          {
            id: id.slice(CHECKPOINT_PREFIX.length),
            readUpTo: sequenceNumber(data.last_seq),
          },
        ]
      : [];
  });
}
