import type { Logger } from "pino";
import type { JournalConfig } from "./config/types.ts";
import { openJournal } from "./journal/journal.ts";
import type { Journal } from "./journal/journal-types.ts";
import type { Intent, Outcome } from "./ledger/records.ts";
import { StartError } from "./start-error.ts";

/** Free text that is shortened when a record would exceed its size limit in the journal; amounts never are. */
const FREE_TEXT = ["metadata", "sessionId", "requesterIp"] as const;

/** The journal of a gateway's calls; throws {@link StartError}. */
export async function openGatewayJournal(
  { directory, sync, limitBytes, keepMs }: JournalConfig,
  log: Logger,
): Promise<Journal<Intent, Outcome>> {
  try {
    return await openJournal<Intent, Outcome>({
      dir: directory,
      limitBytes,
      keepMs,
      sync,
      freeText: FREE_TEXT,
      now: Date.now,
      log,
    });
  } catch (error) {
    throw new StartError((error as Error).message);
  }
}
