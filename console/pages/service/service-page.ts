import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Check } from "../../../supervisor/checks/config.ts";
import { sentencesOf } from "../../../core/failure.ts";
import { moment } from "../../../core/words.ts";
import { notFound } from "../../../core/nearest.ts";
import {
  redirectWithMessage,
  showFailure,
  showPage,
} from "../../http/show-page.ts";
import type { Status } from "../../../supervisor/status.ts";
import { PastReader } from "./past-reader.ts";
import {
  ServiceActions,
  tomorrowMorning,
  type ActionRequest,
  type ServiceActionOptions,
} from "./service-actions.ts";
import { readOutput } from "./service-output.ts";
import {
  findKnown,
  isInMotion,
  verdictOf,
  viewService,
} from "./service-view.ts";

interface ServicePageOptions extends ServiceActionOptions {
  readonly status: () => Status;
  readonly checks: readonly Check[];
}

interface Named {
  readonly Params: { readonly name: string };
}

const query = z.object({
  span: z.enum(["day", "week", "month"]).catch("day"),
  filter: z.string().trim().max(200).catch(""),
  follow: z.literal("on").optional().catch(undefined),
});

/** GET /services/:name — one service or check; POST …/check, restart, pause, resume, silence, end-silence. */
export function registerServicePage(
  server: FastifyInstance,
  options: ServicePageOptions,
): void {
  const { status } = options;
  const acts = new ServiceActions(options);
  const pasts = new PastReader(options.history);
  server.get<Named>("/services/:name", (request, reply) =>
    showService(request, reply, options, acts, pasts),
  );
  const buttons: Readonly<
    Record<string, (request: ActionRequest) => string | Promise<string>>
  > = {
    check: (request) => acts.check(request),
    pause: (request) => acts.pause(request),
    resume: (request) => acts.resume(request),
    restart: (request) => acts.restart(request),
    silence: (request) => acts.silence(request),
    "end-silence": (request) => acts.endSilence(request),
  };
  for (const [verb, act] of Object.entries(buttons)) {
    server.post<Named>(`/services/:name/${verb}`, (request, reply) =>
      press(request, reply, status(), pasts, act),
    );
  }
}

async function showService(
  request: FastifyRequest<Named>,
  reply: FastifyReply,
  options: ServicePageOptions,
  acts: ServiceActions,
  pasts: PastReader,
): Promise<FastifyReply> {
  const { checks, timeZone, alerting } = options;
  const { name } = request.params;
  const status = options.status();
  const known = findKnown(status, name);
  if (known === undefined) {
    return showUnknown(request, reply, status);
  }
  const { span, filter, follow } = query.parse(request.query);
  const logs = { filter, follow: follow === "on" };
  const view = viewService(
    {
      name,
      status,
      span,
      checks,
      timeZone,
      past: pasts.read(name, known, span),
      silences: alerting.silences().filter(({ pattern }) => pattern === name),
      output: await readOutput(options.runtime(), known, filter),
      logs,
      trouble: acts.errorOf(known.service?.name),
      tomorrow: moment(tomorrowMorning(timeZone), timeZone),
    },
    known,
  );
  return showPage(
    request,
    reply,
    {
      ...verdictOf(name, known, status.at),
      current: "/",
      refreshes: isInMotion(known) || logs.follow ? "soon" : true,
    },
    "service",
    view,
  );
}

/** Performs the action of a button and returns to the page. */
async function press(
  request: FastifyRequest<Named>,
  reply: FastifyReply,
  status: Status,
  pasts: PastReader,
  act: (request: ActionRequest) => string | Promise<string>,
): Promise<FastifyReply> {
  const { name } = request.params;
  const known = findKnown(status, name);
  if (known === undefined) {
    return showUnknown(request, reply, status);
  }
  const back = `/services/${encodeURIComponent(name)}`;
  try {
    const message = await act({ name, known, fields: request.body });
    pasts.forget(name);
    return redirectWithMessage(reply, back, message);
  } catch (error) {
    return showFailure(request, reply, 409, sentencesOf(error), back);
  }
}

function showUnknown(
  request: FastifyRequest<Named>,
  reply: FastifyReply,
  { services, checks }: Status,
): Promise<FastifyReply> {
  const names = new Set([...checks, ...services].map(({ name }) => name));
  return showFailure(
    request,
    reply,
    404,
    [notFound("service or check", request.params.name, [...names])],
    "/",
  );
}
