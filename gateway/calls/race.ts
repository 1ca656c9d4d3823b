import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

/** Names a race in the requests of its calls, which this process sends itself. */
const HEADER = "x-hearth-race";

/** Signals by unguessable name: a client cannot join a race. */
const races = new Map<string, AbortSignal>();

const ANOTHER_ANSWERED = "another model of the call answered first";

/** Calls of which one answer is needed. */
export interface Race {
  readonly headers: Readonly<Record<string, string>>;
  /** Cancels the calls that have not answered; their outcome is recorded as usual. */
  end(): void;
}

/** `reason`: why the others are cancelled, for their rows. */
export function startRace(reason = ANOTHER_ANSWERED): Race {
  const name = randomUUID();
  const aborter = new AbortController();
  races.set(name, aborter.signal);
  return {
    headers: { [HEADER]: name },
    end() {
      aborter.abort(reason);
      races.delete(name);
    },
  };
}

/** Aborted, with the reason, when another call of the same race has answered; null: the call is not part of one. */
export function raceOf(headers: IncomingHttpHeaders): AbortSignal | null {
  const name = headers[HEADER];
  return typeof name === "string" ? (races.get(name) ?? null) : null;
}

type Races = readonly (AbortSignal | null)[];

/** Whether another one has answered first. */
export function isLost(races: Races): boolean {
  return races.some((race) => race?.aborted === true);
}

/** Aborts an attempt when it has lost a race; returns how to leave the races. */
export function endWith(races: Races, aborter: AbortController): () => void {
  const abort = () => aborter.abort();
  for (const race of races) {
    race?.addEventListener("abort", abort);
  }
  if (isLost(races)) {
    abort();
  }
  return () => {
    for (const race of races) {
      race?.removeEventListener("abort", abort);
    }
  };
}
