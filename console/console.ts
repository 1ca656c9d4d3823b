import type { FastifyInstance, RouteOptions } from "fastify";
import { join } from "node:path";
import { readVariable, type Environment } from "../core/environment.ts";
import { Failure } from "../core/failure.ts";
import { readPublicUrl } from "../supervisor/config/public-url.ts";
import { Copies } from "../supervisor/backup/copies.ts";
import { peerOf } from "../supervisor/backup/peer.ts";
import type { Watch } from "../supervisor/checks/watch.ts";
import { Invitations } from "../supervisor/history/invitations.ts";
import type { Supervision } from "../supervisor/supervision.ts";
import { registerAlertRoutes } from "./http/alert-routes.ts";
import { registerBackupRoutes } from "./http/backup-routes.ts";
import { registerCheckRoutes } from "./http/check-routes.ts";
import { registerCopyRoutes } from "./http/copy-routes.ts";
import { registerGatewayRoutes } from "./http/gateway-routes.ts";
import { registerInvitationRoutes } from "./http/invitation-routes.ts";
import { registerJobRoutes } from "./http/job-routes.ts";
import { registerMetricsRoutes } from "./http/metrics-routes.ts";
import { registerNotesRoutes } from "./http/notes-routes.ts";
import { registerReportRoutes } from "./http/report-routes.ts";
import { buildApi, listen } from "./http/server.ts";
import { hearthCommand } from "./pages/hearth-command.ts";
import { registerAlertsPage } from "./pages/alerts/alerts-page.ts";
import { registerAuditPage } from "./pages/audit/audit-page.ts";
import { registerBackupsPage } from "./pages/backups/backups-page.ts";
import { registerCallPage } from "./pages/calls/call-page.ts";
import { registerCallsPage } from "./pages/calls/calls-page.ts";
import { registerAcceptPage } from "./pages/invitations/accept-page.ts";
import { registerInvitationsPage } from "./pages/invitations/invitations-page.ts";
import { registerJobsPage } from "./pages/jobs/jobs-page.ts";
import { registerMePages } from "./pages/me/me-pages.ts";
import { registerModelsPage } from "./pages/models/models-page.ts";
import { NotesReader } from "./pages/notes/notes-reader.ts";
import { registerNotesPage } from "./pages/notes/notes-page.ts";
import {
  openGatewayApi,
  openNounContext,
  type NounContext,
} from "./pages/nouns/noun-context.ts";
import { registerNounPages } from "./pages/nouns/noun-pages.ts";
import { registerPlaygroundPage } from "./pages/playground/playground-page.ts";
import { registerReportsPage } from "./pages/reports/reports-page.ts";
import { findKnown } from "./pages/service/service-view.ts";
import { registerSearchPage } from "./pages/search/search-page.ts";
import { registerServicePage } from "./pages/service/service-page.ts";
import { registerSpendPage } from "./pages/spend/spend-page.ts";
import { registerStatusPage } from "./pages/status/status-page.ts";

interface ConsoleOptions {
  readonly host: string;
  readonly port: number;
  /** Called when the API requests a stop of everything; undefined when this supervisor started nothing. */
  readonly onStopRequested: ((reason: string) => void) | undefined;
}

/** The pages and the API of a supervisor. */
export interface Console {
  readonly address: string;
  readonly close: () => Promise<void>;
}

/** Opens the port. Throws a Failure when another program uses it. */
export async function openConsole(
  supervision: Supervision,
  { host, port, onStopRequested }: ConsoleOptions,
): Promise<Console> {
  const api = buildConsole(supervision, onStopRequested);
  const address = await listen(api, host, port);
  supervision.listensAt(address);
  return { address, close: () => api.close() };
}

/** The server with all routes, not listening yet. `onRoute` gets each route. */
export function buildConsole(
  supervision: Supervision,
  onStopRequested: ConsoleOptions["onStopRequested"],
  onRoute?: (route: RouteOptions) => void,
): FastifyInstance {
  const { config, env, history, jobs, runtime, watch, credentials, onNotice } =
    supervision.context;
  const status = () => supervision.status();
  const api = buildApi({
    status,
    attention: () => supervision.attention(),
    onNotice,
    runtime,
    watch,
    history,
    gateway: openGatewayApi(env),
    stop: onStopRequested,
    credentials,
    publicUrl: readPublicUrl(env),
    proxyHops: readProxyHops(env),
    timeZone: config.jobs.time_zone,
    hearth: hearthCommand(env),
    providers: config.sign_in,
    onRoute,
  });
  refreshAfterChanges(api, () => supervision.refresh());
  registerMetricsRoutes(api, () => ({
    status: status(),
    alarms: supervision.alerting.active(),
    sinks: supervision.alerting.sinks(),
    jobs: jobs.list(),
  }));
  registerAlertRoutes(api, supervision.alerting, history);
  registerCheckRoutes(api, watch, history);
  registerPages(api, supervision);
  registerNotes(api, supervision);
  registerJobs(api, supervision);
  return api;
}

/** Probes a check that has not failed yet: the heading of the next page must not contradict what this one found. */
function probeAgain(watch: Watch | undefined, name: string): void {
  const check = watch?.list().find((each) => each.name === name);
  if (check !== undefined && check.latest?.ok !== false) {
    watch?.probeNow(name).catch(() => {});
  }
}

/** As long as commands wait for the gateway itself. */
const COMMAND_TIMEOUT_MS = 30_000;

/** Pages where an operator changes what may need attention: the next page must not contradict the change. */
const CHANGES_PATH =
  /^\/(?:keys|users|teams|me|models|notes|api\/notes)(?:[/?]|$)/;

function refreshAfterChanges(api: FastifyInstance, refresh: () => void): void {
  api.addHook("onResponse", async ({ method, url }, { statusCode }) => {
    if (method === "POST" && statusCode < 400 && CHANGES_PATH.test(url)) {
      refresh();
    }
  });
}

function registerPages(api: FastifyInstance, supervision: Supervision): void {
  const { config, env, history, jobs, runtime, watch } = supervision.context;
  const timeZone = config.jobs.time_zone;
  const status = () => supervision.status();
  registerStatusPage(api, {
    status,
    history,
    jobs,
    env,
    timeZone,
    devices: () => supervision.devices(),
  });
  registerServicePage(api, {
    status,
    history,
    runtime,
    watch,
    alerting: supervision.alerting,
    checks: config.checks,
    timeZone,
  });
  registerAlertsPage(api, {
    alerting: supervision.alerting,
    config,
    env,
    home: supervision.context.home,
    history,
  });
  const gateway = openNounContext(env, timeZone, {
    page: () =>
      findKnown(status(), "gateway") === undefined ? null : "/services/gateway",
    onSilent: () => probeAgain(watch(), "gateway"),
  });
  registerNounPages(api, gateway);
  registerModelsPage(api, gateway, env);
  registerGatewayRoutes(
    api,
    openGatewayApi(env, COMMAND_TIMEOUT_MS),
    gateway.address,
  );
  registerMePages(api, {
    ...gateway,
    api: openGatewayApi(env),
  });
  registerInvitationsAndAudit(api, supervision, gateway);
  registerSpendPage(api, { env, timeZone });
  registerCallsPage(api, gateway);
  registerCallPage(api, gateway);
  registerPlaygroundPage(api, gateway);
  const { vaults } = supervision;
  registerSearchPage(api, {
    api: gateway.api,
    status,
    jobs,
    vaults: "why" in vaults ? undefined : vaults.promptActs,
  });
}

function registerInvitationsAndAudit(
  api: FastifyInstance,
  { context: { history, config } }: Supervision,
  gateway: NounContext,
): void {
  const invitation = {
    invitations: new Invitations(history.db, Date.now),
    api: gateway.api,
    history,
  };
  registerInvitationRoutes(api, invitation);
  registerInvitationsPage(api, invitation, config.jobs.time_zone);
  registerAcceptPage(api, invitation, gateway, Date.now);
  registerAuditPage(api, {
    api: gateway.api,
    db: history.db,
    timeZone: config.jobs.time_zone,
  });
}

function registerNotes(
  api: FastifyInstance,
  { context, vaults }: Supervision,
): void {
  if ("why" in vaults) {
    registerNotesRoutes(api, vaults.why);
    registerNotesPage(api, vaults);
    return;
  }
  const { acts, promptActs, escrow, files, backups } = vaults;
  const now = Date.now;
  const timeZone = context.config.jobs.time_zone;
  registerNotesRoutes(api, { acts, backups });
  registerNotesPage(api, {
    acts,
    reader: new NotesReader({
      acts: promptActs,
      escrow,
      files,
      jobs: context.jobs,
      backups,
      now,
      timeZone,
    }),
    now,
    timeZone,
  });
}

function registerJobs(
  api: FastifyInstance,
  { context, makeReport }: Supervision,
): void {
  const { config, credentials, env, home, jobs } = context;
  const { backup_copy, notes_backup, postgres_backup, time_zone } = config.jobs;
  registerJobRoutes(api, jobs);
  registerJobsPage(api, jobs);
  registerBackupRoutes(
    api,
    home.backups,
    peerOf(env, credentials().operatorPassword),
  );
  registerBackupsPage(api, { home, env, jobs, timeZone: time_zone });
  registerCopyRoutes(
    api,
    new Copies(join(home.backups, "copies"), {
      most: backup_copy.accept_at_most,
      keep: (kind) => (kind === "notes" ? notes_backup : postgres_backup).keep,
      timeZone: time_zone,
    }),
  );
  registerReportRoutes(api, { makeReport });
  registerReportsPage(api, {
    makeReport,
    directory: home.reports,
    timeZone: time_zone,
    jobs,
  });
}

/** Number of trusted proxies in front of this supervisor; failed sign-in attempts are counted by client address. */
function readProxyHops(env: Environment): number {
  const hops = readVariable("HEARTH_PROXY_HOPS", env) ?? "0";
  if (!/^\d$/.test(hops)) {
    throw new Failure(
      `HEARTH_PROXY_HOPS must be a number from 0 to 9, not "${hops}".`,
    );
  }
  return Number(hops);
}
