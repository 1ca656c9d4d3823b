import { setTimeout as wait } from "node:timers/promises";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Alerting } from "../../../supervisor/alerts/alerting.ts";
import {
  checkRecord,
  checkSteps,
} from "../../../supervisor/checks/check-reports.ts";
import type { Check } from "../../../supervisor/checks/config.ts";
import type { Watch } from "../../../supervisor/checks/watch.ts";
import { inWords } from "../../../core/duration.ts";
import { Failure, sentencesOf } from "../../../core/failure.ts";
import type { History } from "../../../supervisor/history/history.ts";
import { readForm } from "../../http/forms.ts";
import { noSuch } from "../../http/refuse.ts";
import { afterwards, showFailure, showPage } from "../../http/show-page.ts";
import { addDays, beginningOf } from "../../../supervisor/reports/period.ts";
import { restartAsked } from "../../../supervisor/healing/restart.ts";
import type { Runtime } from "../../../supervisor/runtimes/runtime.ts";
import type { Status } from "../../../supervisor/status.ts";
import { dayIn, moment } from "../../../core/words.ts";
import {
  findKnown,
  isInMotion,
  verdictOf,
  viewService,
  type Known,
  type Output,
  type Past,
} from "./service-view.ts";
import { spans, type SpanName } from "./spans.ts";

export interface ServicePageOptions {
  readonly status: () => Status;
  readonly runtime: () => Runtime | undefined;
  readonly watch: () => Watch | undefined;
  readonly alerting: Pick<Alerting, "silence" | "silences" | "endSilences">;
  readonly history: History;
  readonly checks: readonly Check[];
  /** IANA name. */
  readonly timeZone: string;
}

interface Named {
  readonly Params: { readonly name: string };
}
type Act = (
  known: Known,
  request: FastifyRequest<Named>,
) => string | Promise<string>;

const HOUR_MS = 3_600_000;
/** What is read from the history file is kept so long: many open tabs cost no more than one. */
const KEEP_MS = 10_000;
const SHOWN_ENTRIES = 40;
const SHOWN_LINES = 100;
const LONGEST_LINE = 1000;
const LOGS_WITHIN_MS = 2000;
/** Until then a restart that cannot be has said so. */
const REFUSED_WITHIN_MS = 300;
const MORNING = 8 * HOUR_MS;

const query = z.object({ span: z.enum(["day", "week", "month"]).catch("day") });
const silenceForm = z.object({
  for: z.enum(["1h", "8h", "tomorrow"], "choose for how long"),
});

/** GET /services/:name — one service or check; POST …/look, restart, pause, resume, silence, tell-again. */
export function registerServicePage(
  server: FastifyInstance,
  options: ServicePageOptions,
): void {
  const { history, timeZone, checks, alerting } = options;
  const pasts = new Map<string, { readonly at: number; readonly past: Past }>();
  /** How the last restart of each service failed. */
  const troubles = new Map<string, string>();

  function readPast(
    name: string,
    { check, service }: Known,
    span: SpanName,
  ): Past {
    const now = Date.now();
    const key = `${name} ${span}`;
    const kept = pasts.get(key);
    if (kept !== undefined && now - kept.at < KEEP_MS) {
      return kept.past;
    }
    const record = ({ hours, steps }: (typeof spans)[SpanName]) =>
      checkRecord(history.db, name, now - hours * steps * HOUR_MS, now);
    const names = new Set([
      name,
      ...(service === undefined ? [] : [service.name]),
    ]);
    const past = {
      records: {
        day: record(spans.day),
        week: record(spans.week),
        month: record(spans.month),
      },
      steps:
        check === undefined
          ? []
          : checkSteps(history.db, name, now, spans[span]),
      entries: [...names]
        .flatMap((each) => history.latest(SHOWN_ENTRIES, each))
        .toSorted((a, b) => b.at - a.at)
        .slice(0, SHOWN_ENTRIES),
    };
    pasts.set(key, { at: now, past });
    return past;
  }

  function noPage(request: FastifyRequest<Named>, reply: FastifyReply) {
    const { services, checks } = options.status();
    const names = new Set([...checks, ...services].map(({ name }) => name));
    return showFailure(
      request,
      reply,
      404,
      [noSuch("service or check", request.params.name, [...names])],
      "/",
    );
  }

  server.get<Named>("/services/:name", async (request, reply) => {
    const { name } = request.params;
    const status = options.status();
    const known = findKnown(status, name);
    if (known === undefined) {
      return noPage(request, reply);
    }
    const { span } = query.parse(request.query);
    const view = viewService(
      {
        name,
        status,
        span,
        checks,
        timeZone,
        past: readPast(name, known, span),
        silences: alerting.silences().filter(({ pattern }) => pattern === name),
        output: await readOutput(options.runtime(), known),
        trouble: troubles.get(known.service?.name ?? "") ?? null,
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
        refreshes: isInMotion(known) ? "soon" : true,
      },
      "service",
      view,
    );
  });

  /** Does what a button asks for, and goes back to the page, which shows what came of it. */
  function onPress(verb: string, act: Act): void {
    server.post<Named>(`/services/:name/${verb}`, async (request, reply) => {
      const { name } = request.params;
      const known = findKnown(options.status(), name);
      if (known === undefined) {
        return noPage(request, reply);
      }
      const back = `/services/${encodeURIComponent(name)}`;
      try {
        const said = await act(known, request);
        for (const key of pasts.keys()) {
          if (key.startsWith(`${name} `)) {
            pasts.delete(key);
          }
        }
        return afterwards(reply, back, said);
      } catch (error) {
        return showFailure(request, reply, 409, sentencesOf(error), back);
      }
    });
  }

  onPress("look", async (known) => {
    const { name } = checkIn(known);
    const view = await watchNow().lookNow(name);
    return `Looked just now: ${view?.latest?.text ?? "nothing was seen"}.`;
  });
  onPress("pause", (known) => {
    const { name } = checkIn(known);
    watchNow().pause(name, "paused by the operator");
    return `Nobody looks at ${name} until the check is resumed.`;
  });
  onPress("resume", (known) => {
    const { name } = checkIn(known);
    watchNow().resume(name);
    return `${name} is looked at again.`;
  });
  onPress("restart", async ({ service }) => {
    const runtime = options.runtime();
    if (runtime === undefined || service === undefined) {
      throw new Failure(
        "nothing here runs it, so it cannot be restarted here.",
      );
    }
    const { name } = service;
    troubles.delete(name);
    const restart = restartAsked(runtime, options.watch(), name).catch(
      (error: unknown) => {
        troubles.set(name, sentencesOf(error).join(" "));
      },
    );
    // The page shows it coming back; only a refusal is worth waiting for.
    await Promise.race([restart, wait(REFUSED_WITHIN_MS)]);
    const trouble = troubles.get(name);
    if (trouble !== undefined) {
      throw new Failure(trouble);
    }
    return `${name} is being restarted; this page shows when it is back.`;
  });
  onPress("silence", (_known, request) => {
    const form = readForm(request, silenceForm);
    if (form.kind === "mistakes") {
      throw new Failure(Object.values(form.mistakes));
    }
    const now = Date.now();
    const forMs = {
      "1h": HOUR_MS,
      "8h": 8 * HOUR_MS,
      tomorrow: tomorrowMorning(timeZone) - now,
    }[form.value.for];
    const { name } = request.params;
    const { until } = alerting.silence(name, forMs, "silenced by the operator");
    history.act(name, "asked", `silenced for ${inWords(forMs)}`);
    return `Nobody is told of ${name} until ${moment(until, timeZone)}; this page goes on showing it.`;
  });
  onPress("tell-again", (_known, request) => {
    alerting.endSilences(request.params.name);
    history.act(request.params.name, "asked", "silence ended");
    return `People are told of ${request.params.name} again.`;
  });

  function watchNow(): Watch {
    const watch = options.watch();
    if (watch === undefined) {
      throw new Failure("the supervisor is still starting: try again.");
    }
    return watch;
  }
}

function checkIn({ check, service }: Known): NonNullable<Known["check"]> {
  if (check === undefined) {
    throw new Failure(
      `no check looks at ${service?.name ?? "it"}: add one to config/supervisor.local.yaml.`,
    );
  }
  return check;
}

/** Eight o'clock of the next day, where the operator is. */
function tomorrowMorning(timeZone: string): number {
  const tomorrow = addDays(dayIn(timeZone, Date.now()), 1);
  return beginningOf(tomorrow, timeZone) + MORNING;
}

/** The last lines of the process; a runtime that does not answer must not hold up the page. */
async function readOutput(
  runtime: Runtime | undefined,
  { service }: Known,
): Promise<Output> {
  if (runtime === undefined || service === undefined) {
    return {
      kind: "none",
      why: "Nothing on this machine runs it for the supervisor, so its output is not here.",
    };
  }
  try {
    const lines = await Promise.race([
      runtime.logs(service.name, SHOWN_LINES),
      wait(LOGS_WITHIN_MS).then(() => null),
    ]);
    if (lines === null) {
      return {
        kind: "none",
        why: `Its output could not be read within ${LOGS_WITHIN_MS / 1000} s: hearth logs ${service.name} may wait longer.`,
      };
    }
    return {
      kind: "lines",
      lines: lines.map((line) =>
        line.length <= LONGEST_LINE ? line : `${line.slice(0, LONGEST_LINE)}…`,
      ),
    };
  } catch (error) {
    return {
      kind: "none",
      why: `Its output cannot be read: ${sentencesOf(error).join(" ")}`,
    };
  }
}
