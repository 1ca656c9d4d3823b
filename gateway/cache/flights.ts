import type { CachedAnswer } from "./entry.ts";

/** `failed`: another call may have an answer. `not_shared`: there is one that each call needs for itself. */
export type Landing = CachedAnswer | "failed" | "not_shared";

/** An answer that is being produced for the first of several identical calls. */
export interface Flight {
  readonly landed: Promise<Landing>;
}

/** Identical calls at the same time on this instance: one asks the provider, the others wait for its answer. */
export interface Flights {
  /** The flight of the same question, now with one follower more; null: there is none, and the caller leads a new one. */
  join(key: string): Flight | null;
  leave(key: string): void;
  /** Of several landings of a flight the first counts. */
  land(key: string, landing: Landing): void;
  /** The leader's call is over; until then others find its flight, landed or not. */
  end(key: string): void;
  hasFollowers(key: string): boolean;
  /** Called when the last follower leaves a flight whose own client has left already. */
  whenAbandoned(key: string, stop: () => void): void;
}

interface Open extends Flight {
  readonly resolve: (landing: Landing) => void;
  followers: number;
  stop: (() => void) | null;
}

export function createFlights(): Flights {
  const flights = new Map<string, Open>();
  return {
    join(key) {
      const flight = flights.get(key);
      if (flight !== undefined) {
        flight.followers++;
        return flight;
      }
      const { promise, resolve } = Promise.withResolvers<Landing>();
      flights.set(key, { landed: promise, resolve, followers: 0, stop: null });
      return null;
    },
    leave(key) {
      const flight = flights.get(key);
      if (flight === undefined) {
        return;
      }
      flight.followers--;
      if (flight.followers === 0) {
        flight.stop?.();
      }
    },
    land: (key, landing) => flights.get(key)?.resolve(landing),
    end(key) {
      flights.get(key)?.resolve("failed");
      flights.delete(key);
    },
    hasFollowers: (key) => (flights.get(key)?.followers ?? 0) > 0,
    whenAbandoned(key, stop) {
      const flight = flights.get(key);
      if (flight !== undefined) {
        flight.stop = stop;
      }
    },
  };
}
