import type { FastifyInstance } from "fastify";
import { z } from "zod";
import type { Failure } from "../../core/failure.ts";
import {
  AlreadyRuns,
  NoSuchJob,
  UnfulfillableRequest,
  type JobRunner,
} from "../../supervisor/jobs/runner.ts";
import { sendError, sendResult } from "./send-error.ts";

const runBody = z
  .strictObject({ options: z.record(z.string(), z.unknown()).optional() })
  .nullish();
const MAX_RUNS = 200;

/** GET /api/jobs, /api/jobs/:name/runs, /api/job-runs/:id; POST /api/jobs/:name/run, /api/jobs/:name/stop. */
export function registerJobRoutes(
  server: FastifyInstance,
  jobs: JobRunner,
): void {
  server.get("/api/jobs", () => ({ jobs: jobs.list() }));
  server.get<{ Params: { name: string } }>(
    "/api/jobs/:name/runs",
    (request, reply) =>
      sendResult(reply, statusOfJobFailure, () => ({
        runs: jobs.runsOf(request.params.name, MAX_RUNS),
      })),
  );
  server.get<{ Params: { id: string } }>(
    "/api/job-runs/:id",
    (request, reply) => {
      const run = jobs.view(Number(request.params.id));
      return run === undefined
        ? sendError(reply, 404, `run ${request.params.id} not found.`)
        : reply.send(run);
    },
  );
  server.post<{ Params: { name: string } }>(
    "/api/jobs/:name/run",
    (request, reply) => {
      const body = runBody.safeParse(request.body);
      if (!body.success) {
        return sendError(reply, 400, 'the body must be {"options": {…}}.');
      }
      return sendResult(reply.code(202), statusOfJobFailure, () =>
        jobs.run(request.params.name, body.data?.options),
      );
    },
  );
  server.post<{ Params: { name: string } }>(
    "/api/jobs/:name/stop",
    (request, reply) =>
      sendResult(reply, statusOfJobFailure, () => ({
        stopped: jobs.stopRun(request.params.name),
      })),
  );
}

/** The HTTP status of a runner's Failure. */
export function statusOfJobFailure(error: Failure): number {
  if (error instanceof NoSuchJob) {
    return 404;
  }
  if (error instanceof UnfulfillableRequest) {
    return 400;
  }
  return error instanceof AlreadyRuns ? 409 : 502;
}
