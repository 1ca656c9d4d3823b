import type { Admission, AdmitCall, LimitStore } from "./limits.ts";

interface WaitingOptions {
  /** Maximum time that a call waits for budget reserved by calls in flight; ms. */
  readonly maxWaitMs?: number;
  /** Ends the wait early: the caller has disconnected. */
  readonly signal?: AbortSignal;
}

const HELD_FOR_MS = 2_000;
const FIRST_WAIT_MS = 50;
const MAX_WAIT_MS = 400;

/**
 * Admits a call; while only leases of other calls block it, it retries, woken by each settlement of this instance and
 * in growing steps for those of others. Returns the rejection when the time is over.
 */
export async function admitWaiting(
  store: LimitStore,
  call: AdmitCall,
  options: WaitingOptions = {},
): Promise<Admission> {
  const { maxWaitMs: heldForMs = HELD_FOR_MS, signal } = options;
  let admission = await store.admit(call);
  if (admission.kind !== "budget_held") {
    return admission;
  }
  const until = performance.now() + heldForMs;
  for (let step = FIRST_WAIT_MS; ; step = Math.min(step * 2, MAX_WAIT_MS)) {
    const left = until - performance.now();
    if (left <= 0 || signal?.aborted === true) {
      return admission;
    }
    await store.released(admission.entity, Math.min(step, left));
    admission = await store.admit(call);
    if (admission.kind !== "budget_held") {
      return admission;
    }
  }
}
