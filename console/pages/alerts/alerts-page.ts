import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Environment } from "../../../core/environment.ts";
import { Failure } from "../../../core/failure.ts";
import { moment } from "../../../core/words.ts";
import type { Alerting } from "../../../supervisor/alerts/alerting.ts";
import type { SinkState } from "../../../supervisor/alerts/dispatcher.ts";
import type { SupervisorConfig } from "../../../supervisor/config/schema.ts";
import { withAuthor } from "../../../supervisor/history/author.ts";
import type { History } from "../../../supervisor/history/history.ts";
import type { Home } from "../../../supervisor/home/home.ts";
import { needForm } from "../../http/forms.ts";
import {
  redirectWithMessage,
  showingFailures,
  showPage,
} from "../../http/show-page.ts";
import { ServiceActions, tomorrowMorning } from "../service/service-actions.ts";
import { alertsHeading, viewAlerts } from "./alerts-view.ts";
import { placeOfConfig } from "./config-place.ts";

const PATH = "/alerts";
/** Enough for many that were raised again and again. */
const PAST_READ = 1000;
const failing = { statusOf: () => 409, back: PATH };

const sinkForm = z.object({ sink: z.string().max(200).optional() });
const silenceForm = z.object({
  subject: z.string("is required").max(200),
  for: z.string("is required").max(20),
});
const endForm = z.object({ id: z.string("is required").max(200) });

interface AlertsPageParts {
  readonly alerting: Alerting;
  readonly config: Pick<SupervisorConfig, "notify" | "watchdog" | "jobs">;
  readonly env: Environment;
  readonly home: Home;
  readonly history: History;
}

/** GET /alerts; POST /alerts/test, /alerts/silence and /alerts/end-silence. */
export function registerAlertsPage(
  server: FastifyInstance,
  parts: AlertsPageParts,
): void {
  const { alerting, config, history } = parts;
  const acts = new ServiceActions({
    runtime: () => undefined,
    watch: () => undefined,
    alerting,
    history,
    timeZone: config.jobs.time_zone,
  });
  server.get(PATH, (request, reply) => showAlerts(request, reply, parts));
  server.post(`${PATH}/test`, (request, reply) =>
    showingFailures(request, reply, failing, async () => {
      const { sink } = needForm(request, sinkForm);
      return redirectWithMessage(reply, PATH, await test(alerting, sink));
    }),
  );
  server.post(`${PATH}/silence`, (request, reply) =>
    showingFailures(request, reply, failing, () => {
      const { subject, ...fields } = needForm(request, silenceForm);
      const known = { check: undefined, service: undefined };
      const message = acts.silence({ name: subject, known, fields });
      return redirectWithMessage(reply, PATH, message);
    }),
  );
  server.post(`${PATH}/end-silence`, (request, reply) =>
    showingFailures(request, reply, failing, () => {
      const { id } = needForm(request, endForm);
      const [ended] = alerting.endSilences(id);
      if (ended === undefined) {
        throw new Failure("the silence had already ended.");
      }
      history.act(ended.pattern, "asked", withAuthor("silence ended"));
      return redirectWithMessage(
        reply,
        PATH,
        `Alerts for "${ended.pattern}" resumed.`,
      );
    }),
  );
}

function showAlerts(
  request: FastifyRequest,
  reply: FastifyReply,
  { alerting, config, env, home }: AlertsPageParts,
): Promise<FastifyReply> {
  const timeZone = config.jobs.time_zone;
  const facts = {
    alarms: alerting.active(),
    history: alerting.history(PAST_READ),
    silences: alerting.silences(),
    sinks: alerting.sinks(),
    configs: config.notify,
    hasWatchdog: config.watchdog.url !== undefined,
    place: placeOfConfig(home, env),
    now: Date.now(),
    timeZone,
    tomorrow: moment(tomorrowMorning(timeZone), timeZone),
  };
  return showPage(
    request,
    reply,
    {
      ...alertsHeading(facts),
      current: PATH,
      refreshes: true,
      json: "/api/alerts",
    },
    "alerts",
    viewAlerts(facts),
  );
}

/** Sends a test message through one channel, or through all; returns the result in a sentence. Throws a Failure if none is delivered. */
async function test(
  alerting: Alerting,
  only: string | undefined,
): Promise<string> {
  const names = alerting.sinks().map(({ name }) => name);
  if (names.length === 0 || (only !== undefined && !names.includes(only))) {
    throw new Failure(
      only === undefined
        ? "no channel is configured: set one up as the page Alerts shows."
        : `channel "${only}" is not configured.`,
    );
  }
  const tested = (await alerting.test(only)).filter(
    ({ name }) => only === undefined || name === only,
  );
  const failed = tested.filter(({ trouble }) => trouble !== null);
  if (failed.length > 0) {
    throw new Failure(failed.map(describeFailed));
  }
  const through = tested.map(({ name }) => name).join(", ");
  return `Test message delivered through ${through}.`;
}

function describeFailed({ name, trouble }: SinkState): string {
  return `the test message through "${name}" failed: ${trouble}; it is retried.`;
}
