import type { CachedAnswer } from "./entry.ts";

/** `failed`: another call may have an answer. `not_shared`: there is one that each call needs for itself. */
export type Landing = CachedAnswer | "failed" | "not_shared";

/** An answer that is being produced for the first of several identical calls. */
interface Flight {
  readonly landed: Promise<Landing>;
}

/** Identical calls at the same time on this instance: one asks the provider, the others wait for its answer. */
export interface Flights {
  /** The flight of the same question, now with one follower more; null: there is none, and this call leads a new one. */
  join(key: string, callId: string): Flight | null;
  leave(key: string): void;
  /** Of several landings of a flight the first counts. */
  land(key: string, landing: Landing): void;
  /** The leader has an answer that each follower needs for itself: none waits for it any more. */
  cannotShare(key: string, leader: string): void;
  /** The leader's call is over; until then others find its flight, landed or not. */
  end(key: string): void;
  /** Whether others wait for the answer of this call. */
  hasFollowers(key: string, leader: string): boolean;
  /** Called when no follower waits for this call any more, whose own client has left already. */
  whenAbandoned(key: string, leader: string, stop: () => void): void;
}

interface Open extends Flight {
  readonly leader: string;
  readonly resolve: (landing: Landing) => void;
  isLanded: boolean;
  /** That wait for it. */
  followers: number;
  stop: (() => void) | null;
}

export function createFlights(): Flights {
  const flights = new Map<string, Open>();
  /** A call that shares the key without leading, because it does not read the cache, has no followers. */
  const ledBy = (key: string, callId: string): Open | null => {
    const flight = flights.get(key);
    return flight?.leader === callId ? flight : null;
  };
  const land = (flight: Open | null | undefined, landing: Landing): void => {
    if (flight == null || flight.isLanded) {
      return;
    }
    flight.isLanded = true;
    flight.followers = 0;
    flight.resolve(landing);
    flight.stop?.();
  };
  return {
    join(key, callId) {
      const flight = flights.get(key);
      if (flight !== undefined) {
        flight.followers += flight.isLanded ? 0 : 1;
        return flight;
      }
      const { promise, resolve } = Promise.withResolvers<Landing>();
      flights.set(key, {
        leader: callId,
        landed: promise,
        resolve,
        isLanded: false,
        followers: 0,
        stop: null,
      });
      return null;
    },
    leave(key) {
      const flight = flights.get(key);
      if (flight === undefined || flight.isLanded) {
        return;
      }
      flight.followers--;
      if (flight.followers === 0) {
        flight.stop?.();
      }
    },
    land: (key, landing) => land(flights.get(key), landing),
    cannotShare: (key, leader) => land(ledBy(key, leader), "not_shared"),
    end(key) {
      land(flights.get(key), "failed");
      flights.delete(key);
    },
    hasFollowers: (key, leader) => (ledBy(key, leader)?.followers ?? 0) > 0,
    whenAbandoned(key, leader, stop) {
      const flight = ledBy(key, leader);
      if (flight !== null) {
        flight.stop = stop;
      }
    },
  };
}
