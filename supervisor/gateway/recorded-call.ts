import { setTimeout as sleep } from "node:timers/promises";
import type { z } from "zod";
import { Refusal, type AdminApi } from "./admin-api.ts";
import { callInFull } from "./calls.ts";

const TRIES = 20;
const WAIT_MS = 100;

/** What the ledger says about a call that has just ended. */
const recorded = callInFull.pick({
  spend: true,
  unpriced: true,
  prompt_tokens: true,
  completion_tokens: true,
  total_tokens: true,
});

export type RecordedCall = z.infer<typeof recorded>;

/**
 * A call in the ledger, where it follows its answer after a moment; undefined if it is not there after two seconds, for
 * example while the database is unavailable.
 */
export async function recordedCall(
  api: AdminApi,
  callId: string,
): Promise<RecordedCall | undefined> {
  const path = `/spend/calls/${encodeURIComponent(callId)}`;
  for (let tries = 0; tries < TRIES; tries += 1) {
    try {
      return recorded.parse(await api.ask("GET", path));
    } catch (error) {
      // Not recorded yet, or no database. A gateway that does not answer at all is not waited for.
      if (!(error instanceof Refusal)) {
        return undefined;
      }
    }
    await sleep(WAIT_MS);
  }
  return undefined;
}
