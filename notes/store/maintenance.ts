import { MINUTE_MS } from "../../core/duration.ts";
import { fillChecksums } from "./fill-checksums.ts";
import type { Store } from "./store.ts";
import { INTERVAL_MS, thinHistory } from "./thin-history.ts";

const FIRST_RUN_MS = MINUTE_MS;

/** Thins the history of an open database each hour, and gives older bodies a checksum. */
export function maintainRegularly(store: Store): void {
  const run = (): void => {
    if (store.closing) {
      return;
    }
    // What could not be done, as on a full disk, is done by a later run.
    thinHistory(store)
      .then(() => fillChecksums(store))
      .catch(() => undefined);
  };
  setTimeout(run, FIRST_RUN_MS).unref();
  setInterval(run, INTERVAL_MS).unref();
}
