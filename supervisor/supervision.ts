import type { Environment } from "../core/environment.ts";
import { textOf } from "../core/failure.ts";
import type { Alerting } from "./alerts/alerting.ts";
import { openAlerts } from "./alerts/alerts-module.ts";
import { openChecksModule } from "./checks/checks-module.ts";
import type { CheckState } from "./checks/state.ts";
import { startWatch } from "./checks/check-watch.ts";
import type { Watch } from "./checks/watch.ts";
import type { CheckView } from "./checks/watched.ts";
import type { LoadedConfig } from "./config/load.ts";
import type { Context, KnownDevices, Module } from "./context.ts";
import { openCredentials } from "./credentials.ts";
import { openPayersOverBudgetModule } from "./gateway/payers-over-budget.ts";
import { openUndrainedInstancesModule } from "./gateway/undrained-instances.ts";
import { openDamagedHistoryModule } from "./history/damaged-history.ts";
import type { History } from "./history/history.ts";
import type { Home } from "./home/home.ts";
import { systemClock } from "./jobs/clock.ts";
import { openJobHistory } from "./jobs/job-history.ts";
import { jobsAreOn } from "./jobs/job-switch.ts";
import { openJobsModule } from "./jobs/jobs-module.ts";
import { JobRunner } from "./jobs/runner.ts";
import { offsiteWarning } from "./offsite/warning.ts";
import { ownRelease } from "./release/release.ts";
import { openReporting, type MakeReport } from "./reports/reporting.ts";
import type { Runtime } from "./runtimes/runtime.ts";
import { findAttention, type Attention, type Status } from "./status.ts";
import { openUsageAlerts } from "./usage-alerts/usage-alerts.ts";
import { judge } from "./verdict.ts";
import {
  openVaultsModule,
  type NoVaults,
  type Vaults,
} from "./vaults/vaults-module.ts";

interface SupervisionOptions {
  readonly home: Home;
  readonly env: Environment;
  readonly config: LoadedConfig;
  readonly history: History;
  readonly onCheck: (view: CheckView, before: CheckState) => void;
  readonly onNotice: (sentence: string) => void;
}

/**
 * Checks, healing, alarms and jobs, independent of the runtime of the services. Active from `start` on; its state is available
 * to the console immediately.
 */
export class Supervision {
  readonly context: Context;
  readonly alerting: Alerting;
  readonly vaults: Vaults | NoVaults;
  readonly makeReport: MakeReport;
  readonly #options: SupervisionOptions;
  readonly #startedAt = Date.now();
  readonly #release = ownRelease();
  /** In starting order; stopped in reverse order. */
  readonly #modules: readonly Module[];
  readonly #needs = new Map<string, readonly Attention[]>();
  readonly #notices: string[] = [];
  #phase: Status["phase"] = "starting";
  #runtime: Runtime | undefined;
  #watch: Watch | undefined;
  #devices: KnownDevices | undefined;
  #address = "";

  constructor(options: SupervisionOptions) {
    const { home, env, history, onNotice } = options;
    const { config, leftOut } = options.config;
    this.#options = options;
    leftOut.forEach((sentence) => this.notice(sentence));
    const alerts = openAlerts({ env, config, history, onNotice });
    this.alerting = alerts.alerting;
    this.context = {
      home,
      env,
      config,
      history,
      alarms: this.alerting,
      credentials: openCredentials(home, env),
      jobs: new JobRunner({
        history: openJobHistory(history.db, onNotice),
        alarms: this.alerting,
        clock: systemClock,
        timeZone: config.jobs.time_zone,
        scheduled: jobsAreOn(env),
        onEnd: () => this.#probeBackups(),
      }),
      runtime: () => this.#runtime,
      watch: () => this.#watch,
      attention: () => this.attention(),
      need: (source, found) => void this.#needs.set(source, found),
      showDevices: (known) => {
        this.#devices = known;
      },
      onNotice,
    };
    this.makeReport = openReporting(this.context);
    const vaults = openVaultsModule(this.context);
    this.vaults = vaults.vaults;
    this.#modules = [
      alerts.module,
      openDamagedHistoryModule(this.context),
      openChecksModule(this.context),
      vaults,
      openPayersOverBudgetModule(this.context),
      openUndrainedInstancesModule(this.context),
      openUsageAlerts(this.context),
      openJobsModule(this.context, this.makeReport),
    ];
  }

  /** What needs a person: the part of the status that every page shows. */
  attention(): Status["attention"] {
    return findAttention(
      this.#runtime?.list() ?? [],
      this.#watch?.list() ?? [],
      this.alerting.active(),
      [...this.#needs.values()].flat(),
    );
  }

  status(): Status {
    const { home, env } = this.#options;
    const services = this.#runtime?.list() ?? [];
    const checks = this.#watch?.list() ?? [];
    const attention = this.attention();
    return {
      ...judge(this.#phase, services, attention, checks),
      phase: this.#phase,
      at: Date.now(),
      supervisor: {
        pid: process.pid,
        address: this.#address,
        since: this.#startedAt,
        home: home.root,
        release: this.#release?.id ?? null,
        memoryBytes: process.memoryUsage.rss(),
      },
      services: services.map((service) => ({
        ...service,
        stats: this.#runtime?.stats(service.name) ?? null,
      })),
      checks,
      attention,
      notices: this.#notices,
      offsite: offsiteWarning(home, env) ?? null,
    };
  }

  /** Undefined until known. */
  devices(): KnownDevices | undefined {
    return this.#devices;
  }

  /** Looks for what needs a person after a change by an operator, before the next regular time. */
  refresh(): void {
    for (const module of this.#modules) {
      module.refresh?.();
    }
  }

  /** Jobs take, fetch and remove backups: the status must not contradict the list of backups until the next regular check. */
  #probeBackups(): void {
    for (const { name, kind, state } of this.#watch?.list() ?? []) {
      if (kind === "backup" && state !== "paused") {
        void this.#watch?.probeNow(name);
      }
    }
  }

  /** Adds a notice about this start to the status. */
  notice(sentence: string): void {
    this.#notices.push(sentence);
    this.#options.onNotice(sentence);
  }

  /** The address of the console. */
  listensAt(address: string): void {
    this.#address = address;
  }

  /** Sets the runtime whose services are displayed. */
  show(runtime: Runtime): void {
    this.#runtime = runtime;
  }

  /** Starts checks, healing and jobs when all services are up. */
  start(): void {
    const { config, history, onCheck, onNotice } = this.#options;
    this.#watch = startWatch({
      config: config.config,
      runtime: this.#runtime,
      history,
      alarms: this.alerting,
      onChange: onCheck,
      onError: (error) => onNotice(`a check failed to run: ${textOf(error)}`),
    });
    for (const module of this.#modules) {
      module.start();
    }
    this.#phase = "running";
  }

  /** Stops checks and jobs; the console continues to answer. */
  async rest(): Promise<void> {
    this.#phase = "stopping";
    // First: at shutdown of a host, Docker stops all containers at once; a container restarted then would count as stopped by
    // hand and not start at the next boot.
    this.#watch?.stop();
    for (const module of this.#modules.toReversed()) {
      await module.stop();
    }
  }
}
