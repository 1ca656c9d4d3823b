import { textOf } from "../../core/failure.ts";
import { registerCheckRoutes } from "../../console/http/check-routes.ts";
import type { Room, Surroundings } from "../supervision.ts";
import { rollUpChecks } from "./check-hours.ts";

const ROLL_UP_EVERY_MS = 300_000;

/** What is asked of the checks over the API, and the hourly sums of what they saw. */
export function openChecksRoom({
  history,
  watch,
  onNotice,
}: Surroundings): Room {
  let timer: NodeJS.Timeout | undefined;
  const rollUp = () => {
    try {
      rollUpChecks(history.db, Date.now());
    } catch (error) {
      onNotice(`what the checks saw cannot be summed up: ${textOf(error)}`);
    }
  };
  return {
    routes: (server) => registerCheckRoutes(server, watch, history.db),
    begin: () => {
      timer = setInterval(rollUp, ROLL_UP_EVERY_MS);
    },
    stop: async () => clearInterval(timer),
  };
}
