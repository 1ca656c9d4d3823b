import { askHttp } from "../checks/http-get.ts";
import { textOf } from "../../core/failure.ts";
import type { Alarms } from "./alarm.ts";
import type { WatchdogConfig } from "./config.ts";

const ANSWER_WITHIN_MS = 10_000;
const FAILURES_BEFORE_ALARM = 3;
const FINGERPRINT = "watchdog";

/**
 * Asks an address outside every so often; when the asking ends, whoever is there knows that this supervisor is gone.
 * Returns how to end it.
 */
export function startWatchdog(
  { url, every }: WatchdogConfig,
  alarms: Alarms,
): () => void {
  if (url === undefined) {
    return () => {};
  }
  const stopping = new AbortController();
  let failures = 0;

  async function ping(address: string): Promise<void> {
    try {
      const { status } = await askHttp(address, {
        signal: AbortSignal.any([
          stopping.signal,
          AbortSignal.timeout(ANSWER_WITHIN_MS),
        ]),
      });
      if (status > 299) {
        throw new Error(`answered ${status}`);
      }
      failures = 0;
      alarms.clear(FINGERPRINT);
    } catch (error) {
      if (stopping.signal.aborted) {
        return;
      }
      failures += 1;
      if (failures >= FAILURES_BEFORE_ALARM) {
        alarms.raise({
          fingerprint: FINGERPRINT,
          level: "warning",
          subject: "watchdog",
          text: "the address that watches over this supervisor cannot be reached; it may soon say that we are gone",
          output: textOf(error),
          command: "hearth doctor",
        });
      }
    }
  }

  void ping(url);
  const timer = setInterval(() => void ping(url), every);
  return () => {
    clearInterval(timer);
    stopping.abort();
  };
}
