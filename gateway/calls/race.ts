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

/** Their reasons say why an attempt is cancelled. */
type Races = readonly (AbortSignal | null)[];

/** Why an attempt is not needed any more; null: it is. */
export function lostBecause(races: Races): string | null {
  const lost = races.find((race) => race?.aborted === true);
  return lost == null ? null : String(lost.reason);
}

/** Aborts an attempt when it has lost a race; returns how to leave the races. */
export function endWith(races: Races, aborter: AbortController): () => void {
  const abort = () => aborter.abort();
  for (const race of races) {
    race?.addEventListener("abort", abort);
  }
  if (lostBecause(races) !== null) {
    abort();
  }
  return () => {
    for (const race of races) {
      race?.removeEventListener("abort", abort);
    }
  };
}
