import type { Flights } from "../cache/flights.ts";
import type { StreamClient } from "../providers/stream-start.ts";
import type { Call } from "./call.ts";

/**
 * Runs `then` once the client of a call has left, and every identical call that waits for its answer. Returns how to stop
 * watching.
 */
export function onceAllLeft(
  flights: Flights,
  { id, cacheKey }: Pick<Call, "id" | "cacheKey">,
  client: StreamClient,
  then: () => void,
): () => void {
  const onClose = () => {
    if (cacheKey !== null && flights.hasFollowers(cacheKey, id)) {
      flights.whenAbandoned(cacheKey, id, then);
    } else {
      then();
    }
  };
  if (client.destroyed) {
    onClose();
    return () => undefined;
  }
  client.once("close", onClose);
  return () => client.off("close", onClose);
}
