import type { FastifyInstance } from "fastify";
import { DAY_MS } from "../../../core/duration.ts";
import {
  checkRecords,
  hourBars,
} from "../../../supervisor/checks/check-reports.ts";
import { incidents } from "../../../supervisor/checks/incidents.ts";
import { readVariable, type Environment } from "../../../core/environment.ts";
import type { History } from "../../../supervisor/history/history.ts";
import { showPage } from "../../http/show-page.ts";
import type { JobRunner } from "../../../supervisor/jobs/runner.ts";
import type { KnownDevices } from "../../../supervisor/context.ts";
import type { Status } from "../../../supervisor/status.ts";
import { readMonthSpend } from "./month-spend.ts";
import type { StatusFacts } from "./status-facts.ts";
import { lookOfStatus, viewStatus } from "./status-view.ts";

interface StatusPageOptions {
  readonly status: () => Status;
  readonly history: History;
  readonly jobs: JobRunner;
  readonly env: Environment;
  /** IANA name. */
  readonly timeZone: string;
  /** Undefined where notes are not managed. */
  readonly devices: () => KnownDevices | undefined;
}

/** Results from the history file are cached: many open tabs cost no more than one. */
const CACHE_MS = 10_000;

/** GET / — the state of everything on one page, which also renders while services are unavailable. */
export function registerStatusPage(
  server: FastifyInstance,
  options: StatusPageOptions,
): void {
  const { history, timeZone } = options;
  const spend = readMonthSpend(
    () => readVariable("SUPERVISOR_DATABASE_URL", options.env),
    timeZone,
    Date.now,
  );
  let past: Pick<StatusFacts, "bars" | "records" | "incidents"> | undefined;
  let readAt = 0;

  function readPast(now: number) {
    if (past !== undefined && now - readAt < CACHE_MS) {
      return past;
    }
    readAt = now;
    past = {
      bars: hourBars(history.db, now),
      records: checkRecords(history.db, now - DAY_MS, now),
      incidents: incidents(history.db, now - 7 * DAY_MS, now),
    };
    return past;
  }

  server.get("/", async (request, reply) => {
    const status = options.status();
    const view = viewStatus({
      status,
      ...readPast(status.at),
      jobs: options.jobs.list(),
      spend: await spend(),
      devices: options.devices(),
      timeZone,
    });
    return showPage(
      request,
      reply,
      {
        title: status.verdict,
        look: lookOfStatus(status),
        current: "/",
        refreshes: true,
        json: "/api/status",
        attention: status.attention,
      },
      "status",
      view,
    );
  });
}
