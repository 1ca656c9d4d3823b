import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { needForm, offsetIn } from "../../http/forms.ts";
import { statusOfJobFailure } from "../../http/job-routes.ts";
import {
  redirectWithMessage,
  showingFailures,
  showFailure,
  showPage,
} from "../../http/show-page.ts";
import type { JobOption } from "../../../supervisor/jobs/job.ts";
import type { JobRunner } from "../../../supervisor/jobs/runner.ts";
import {
  jobsHeading,
  viewJobPage,
  viewJobs,
  viewRunPage,
} from "./jobs-view.ts";

const PATH = "/jobs";
const RUNS_ON_PAGE = 30;
const failing = { statusOf: statusOfJobFailure, back: PATH };

interface JobRequest {
  readonly Params: { readonly name: string };
}
interface JobPageRequest extends JobRequest {
  readonly Querystring: { readonly from?: string };
}
interface RunRequest {
  readonly Params: { readonly name: string; readonly run: string };
}

/** GET /jobs, /jobs/:name and /jobs/:name/:run; POST /jobs/:name/run and /jobs/:name/stop. */
export function registerJobsPage(
  server: FastifyInstance,
  jobs: JobRunner,
): void {
  server.get(PATH, (request, reply) => showJobs(request, reply, jobs));
  server.get<JobPageRequest>(`${PATH}/:name`, (request, reply) =>
    showingFailures(request, reply, failing, () =>
      showJob(request, reply, jobs),
    ),
  );
  server.get<RunRequest>(`${PATH}/:name/:run`, (request, reply) =>
    showRun(request, reply, jobs),
  );
  server.post<JobRequest>(`${PATH}/:name/run`, (request, reply) =>
    showingFailures(request, reply, failing, () =>
      startRun(request, reply, jobs),
    ),
  );
  server.post<JobRequest>(`${PATH}/:name/stop`, (request, reply) =>
    showingFailures(request, reply, failing, () => {
      const { name } = request.params;
      const stopped = jobs.stopRun(name);
      return redirectWithMessage(
        reply,
        `${PATH}/${name}`,
        stopped
          ? `Stopping job "${name}".`
          : `Job "${name}" had already finished.`,
      );
    }),
  );
}

function showJobs(
  request: FastifyRequest,
  reply: FastifyReply,
  jobs: JobRunner,
): Promise<FastifyReply> {
  const all = jobs.list();
  return showPage(
    request,
    reply,
    {
      ...jobsHeading(all),
      current: PATH,
      json: "/api/jobs",
      refreshes: all.some(({ running }) => running !== null) ? "soon" : true,
    },
    "jobs",
    viewJobs(all, (name) => jobs.optionsOf(name), Date.now()),
  );
}

function showJob(
  request: FastifyRequest<JobPageRequest>,
  reply: FastifyReply,
  jobs: JobRunner,
): FastifyReply | Promise<FastifyReply> {
  const { name } = request.params;
  const from = offsetIn(request.query.from);
  const runs = jobs.runsOf(name, from + RUNS_ON_PAGE + 1).slice(from);
  const job = jobs.list().find((each) => each.name === name);
  if (job === undefined) {
    return reply.redirect(`${PATH}/${name.replaceAll("_", "-")}`);
  }
  const view = viewJobPage({
    job,
    options: jobs.optionsOf(name),
    from,
    now: Date.now(),
    runs: runs.slice(0, RUNS_ON_PAGE),
    more: runs.length > RUNS_ON_PAGE,
  });
  return showPage(
    request,
    reply,
    {
      title: view.title,
      look: view.look,
      current: PATH,
      refreshes: job.running === null ? true : "soon",
      json: `/api/jobs/${job.name}/runs`,
    },
    "job",
    view,
  );
}

function showRun(
  request: FastifyRequest<RunRequest>,
  reply: FastifyReply,
  jobs: JobRunner,
): Promise<FastifyReply> {
  const { name, run: id } = request.params;
  const run = jobs.view(Number(id));
  if (run?.job !== name) {
    return showFailure(
      request,
      reply,
      404,
      [`Run ${id} of job "${name}" not found.`],
      PATH,
    );
  }
  const { timeZone = "UTC" } = jobs.list()[0] ?? {};
  const view = viewRunPage(run, timeZone, Date.now());
  return showPage(
    request,
    reply,
    {
      title: view.title,
      look: view.look,
      current: PATH,
      refreshes: run.status === "running" ? "soon" : false,
      json: `/api/job-runs/${run.id}`,
    },
    "job-run",
    view,
  );
}

/** Throws a Failure that names each mistake of the form. */
function startRun(
  request: FastifyRequest<JobRequest>,
  reply: FastifyReply,
  jobs: JobRunner,
): FastifyReply {
  const { name } = request.params;
  const fields = needForm(request, formOf(jobs.optionsOf(name)));
  const { job, id } = jobs.run(name, fields);
  return redirectWithMessage(
    reply,
    `${PATH}/${job}/${id}`,
    `Job "${job}" started.`,
  );
}

/** What a job's form sends, as `context.options` takes it. */
function formOf(options: readonly JobOption[]) {
  return z.strictObject(
    Object.fromEntries(
      options.map(({ name, kind }) => [
        name,
        kind === "tick"
          ? z
              .literal("true")
              .transform(() => true)
              .optional()
          : z.string().max(2000, "must be at most 2000 characters").optional(),
      ]),
    ),
  );
}
