import type { FastifyInstance } from "fastify";
import type { Alarms } from "./alerts/alarm.ts";
import { openAlerts } from "./alerts/alerts-room.ts";
import { openChecksRoom } from "./checks/checks-room.ts";
import type { CheckState } from "./checks/state.ts";
import { startWatch, type Watch } from "./checks/watch.ts";
import type { CheckView } from "./checks/watched.ts";
import { openDamagedHistoryRoom } from "./history/damaged-history.ts";
import type { LoadedConfig } from "./config/load.ts";
import type { SupervisorConfig } from "./config/schema.ts";
import { openCredentials, type Credentials } from "./credentials.ts";
import type { Home } from "./home/home.ts";
import { readVariable, type Environment } from "../core/environment.ts";
import { Failure, textOf } from "../core/failure.ts";
import { openKeysOverBudgetRoom } from "./gateway/keys-over-budget.ts";
import type { History } from "./history/history.ts";
import { registerMetricsRoutes } from "../console/http/metrics-routes.ts";
import { buildApi, listen } from "../console/http/server.ts";
import { systemClock } from "./jobs/clock.ts";
import { openJobHistory } from "./jobs/job-history.ts";
import { jobsAreOn } from "./jobs/job-switch.ts";
import { openJobsRoom } from "./jobs/jobs-room.ts";
import { openJobRunner, type JobRunner } from "./jobs/runner.ts";
import { openNotesRoom } from "./vaults/vaults-module.ts";
import { offsiteWarning } from "./offsite/warning.ts";
import { ownRelease } from "./release/release.ts";
import { registerServicePage } from "../console/pages/service/service-page.ts";
import { registerSpendPage } from "../console/pages/spend/spend-page.ts";
import { registerPayersPages } from "../console/pages/payers/payers-pages.ts";
import type { DeviceView } from "../console/pages/status/status-view.ts";
import { registerStatusPage } from "../console/pages/status/status-page.ts";
import type { Runtime } from "./runtimes/runtime.ts";
import { findAttention, judge, type Attention, type Status } from "./status.ts";

export interface SupervisionOptions {
  readonly home: Home;
  readonly env: Environment;
  readonly config: LoadedConfig;
  readonly history: History;
  readonly host: string;
  readonly port: number;
  /** Somebody asked over the API to stop everything; undefined when this supervisor started nothing. */
  readonly onStopAsked: ((reason: string) => void) | undefined;
  readonly onCheck: (view: CheckView, before: CheckState) => void;
  readonly onNotice: (sentence: string) => void;
}

/** What every room of the supervisor works with. */
export interface Surroundings {
  readonly home: Home;
  readonly env: Environment;
  readonly config: SupervisorConfig;
  readonly history: History;
  readonly alarms: Alarms;
  readonly credentials: () => Credentials;
  /** Rooms add their jobs when they open. */
  readonly jobs: JobRunner;
  /** Undefined until the services are up, and where nothing runs services. */
  readonly runtime: () => Runtime | undefined;
  readonly watch: () => Watch | undefined;
  /** What needs a person now. */
  readonly attention: () => readonly Attention[];
  /** What needs a person and is no alarm, in place of what the same source said before. */
  readonly need: (source: string, found: readonly Attention[]) => void;
  /** What the status page says of the vaults' devices. */
  readonly showDevices: (devices: readonly DeviceView[]) => void;
  /** Something that an operator should read once, now. */
  readonly onNotice: (sentence: string) => void;
}

/** One room (jobs, alerts, notes …): its routes are there from the start, its work begins when all is up. */
export interface Room {
  readonly routes: (server: FastifyInstance) => void;
  readonly begin: () => void;
  /** Ends within 10 s. */
  readonly stop: () => Promise<void>;
}

type OpenRoom = (surroundings: Surroundings) => Room;

/** In the order in which they begin; they stop in the reverse one. */
const ROOMS: readonly OpenRoom[] = [
  openDamagedHistoryRoom,
  openChecksRoom,
  openNotesRoom,
  openKeysOverBudgetRoom,
  openJobsRoom,
];

export interface Supervision {
  readonly address: string;
  readonly status: () => Status;
  readonly alarms: Alarms;
  /** Adds something to what the status says of this start. */
  readonly notice: (sentence: string) => void;
  /** Shows what this runtime runs from now on. */
  readonly show: (runtime: Runtime) => void;
  /** Everything is up: begins to look, to heal and to work. */
  readonly begin: () => void;
  /** Stops looking and working; the API goes on answering. */
  readonly rest: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** What the supervisor does however the services run: API, checks, healing, alarms, jobs. Listens at once, works from `begin` on. */
export async function openSupervision(
  options: SupervisionOptions,
): Promise<Supervision> {
  const { home, env, history } = options;
  const { config, leftOut } = options.config;
  const credentials = openCredentials(home, env);
  const publicUrl = readPublicUrl(env);
  const begun = Date.now();
  const release = ownRelease();
  let phase: Status["phase"] = "starting";
  let runtime: Runtime | undefined;
  let watch: Watch | undefined;
  let devices: readonly DeviceView[] | undefined;
  let address = "";
  const needs = new Map<string, readonly Attention[]>();
  const notices: string[] = [];
  const onNotice = (sentence: string) => {
    notices.push(sentence);
    options.onNotice(sentence);
  };
  leftOut.forEach(onNotice);

  const alerts = openAlerts({
    env,
    config,
    history,
    onNotice: options.onNotice,
  });
  const jobs = openJobRunner({
    history: openJobHistory(history.db, options.onNotice),
    alarms: alerts.alerting,
    clock: systemClock,
    timeZone: config.jobs.time_zone,
    scheduled: jobsAreOn(env),
  });
  const surroundings: Surroundings = {
    home,
    env,
    config,
    history,
    alarms: alerts.alerting,
    credentials,
    jobs,
    runtime: () => runtime,
    watch: () => watch,
    attention: () => status().attention,
    need: (source, found) => void needs.set(source, found),
    showDevices: (seen) => {
      devices = seen;
    },
    onNotice: options.onNotice,
  };
  const opened = [alerts.room, ...ROOMS.map((open) => open(surroundings))];

  function status(): Status {
    const services = runtime?.list() ?? [];
    const checks = watch?.list() ?? [];
    const attention = findAttention(
      services,
      checks,
      alerts.alerting.active(),
      [...needs.values()].flat(),
    );
    return {
      ...judge(phase, services, attention, checks),
      phase,
      at: Date.now(),
      supervisor: {
        pid: process.pid,
        address,
        since: begun,
        home: home.root,
        release: release?.id ?? null,
        memoryBytes: process.memoryUsage.rss(),
      },
      services: services.map((service) => ({
        ...service,
        stats: runtime?.stats(service.name) ?? null,
      })),
      checks,
      attention,
      notices,
      offsite: offsiteWarning(home, env) ?? null,
    };
  }

  const api = buildApi({
    status,
    runtime: () => runtime,
    watch: () => watch,
    history,
    stop: options.onStopAsked,
    credentials,
    publicUrl,
    proxyHops: readProxyHops(env),
  });
  registerStatusPage(api, {
    status,
    history,
    jobs,
    env,
    timeZone: config.jobs.time_zone,
    devices: () => devices,
  });
  registerServicePage(api, {
    status,
    history,
    runtime: () => runtime,
    watch: () => watch,
    alerting: alerts.alerting,
    checks: config.checks,
    timeZone: config.jobs.time_zone,
  });
  registerPayersPages(api, env, config.jobs.time_zone);
  registerSpendPage(api, { env, timeZone: config.jobs.time_zone });
  registerMetricsRoutes(api, () => ({
    status: status(),
    alarms: alerts.alerting.active(),
    sinks: alerts.alerting.sinks(),
    jobs: jobs.list(),
  }));
  for (const room of opened) {
    room.routes(api);
  }
  address = await listen(api, options.host, options.port);

  return {
    address,
    status,
    alarms: alerts.alerting,
    notice: onNotice,
    show: (shown) => {
      runtime = shown;
    },
    begin: () => {
      watch = startWatch({
        config,
        runtime,
        history,
        alarms: alerts.alerting,
        onChange: options.onCheck,
        onError: (error) =>
          options.onNotice(`a check failed to run: ${textOf(error)}`),
      });
      for (const room of opened) {
        room.begin();
      }
      phase = "running";
    },
    rest: async () => {
      phase = "stopping";
      // First: at a host's shutdown Docker stops all containers at once, and to restart one then makes Docker take it for
      // stopped by hand, so that the next boot does not start it.
      watch?.stop();
      for (const room of opened.toReversed()) {
        await room.stop();
      }
    },
    close: () => api.close(),
  };
}

/** How many proxies in front of this supervisor name those whom they speak for: wrong passwords are counted by address. */
function readProxyHops(env: Environment): number {
  const hops = readVariable("HEARTH_PROXY_HOPS", env) ?? "0";
  if (!/^\d$/.test(hops)) {
    throw new Failure(
      `HEARTH_PROXY_HOPS is "${hops}": it must be a number from 0 to 9.`,
    );
  }
  return Number(hops);
}

/** Where browsers reach this supervisor, if the operator says so. */
function readPublicUrl(env: Environment): string | undefined {
  const url = readVariable("SUPERVISOR_PUBLIC_URL", env);
  if (url === undefined) {
    return undefined;
  }
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new Failure(
      `SUPERVISOR_PUBLIC_URL is "${url}": it must be an address such as https://console.example.org.`,
    );
  }
  return new URL(url).origin;
}
