import { registerJobRoutes } from "../http/job-routes.ts";
import type { Room, Surroundings } from "../supervision.ts";

/** The jobs of this supervisor: it begins last, when every room has added its own. */
export function openJobsRoom({ jobs }: Surroundings): Room {
  return {
    routes: (server) => registerJobRoutes(server, jobs),
    begin: jobs.begin,
    stop: jobs.stop,
  };
}
