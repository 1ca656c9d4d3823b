import { askHttp } from "../checks/http-get.ts";
import { textOf } from "../../core/failure.ts";
import type { Alarms } from "./alarm.ts";
import type { WatchdogConfig } from "./config.ts";

const ANSWER_WITHIN_MS = 10_000;
const FAILURES_BEFORE_ALARM = 3;
const FINGERPRINT = "watchdog";

/**
 * Requests an external address regularly; when the requests stop, that service reports the supervisor as missing. Returns a
 * function that ends it.
 */
export function startWatchdog(
  { url, every }: WatchdogConfig,
  alarms: Alarms,
): () => void {
  if (url === undefined) {
    // It may be of the previous process, which had an address.
    alarms.clear(FINGERPRINT);
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
          text: "the watchdog address cannot be reached; it may soon report this supervisor as down",
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
