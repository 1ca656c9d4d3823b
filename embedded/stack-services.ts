import { dropLeftRestore } from "../supervisor/backup/replace-database.ts";
import type { History } from "../supervisor/history/history.ts";
import type { Release } from "../supervisor/release/release.ts";
import { startTimeOf } from "../supervisor/runtimes/process/identity.ts";
import { ProcessRuntime } from "../supervisor/runtimes/process/process-runtime.ts";
import {
  alarmOfService,
  retainServices,
} from "../supervisor/runtimes/process/service-alarms.ts";
import type { ServiceSpec } from "../supervisor/runtimes/process/service-spec.ts";
import type {
  ServiceState,
  ServiceView,
} from "../supervisor/runtimes/runtime.ts";
import type { Supervision } from "../supervisor/supervision.ts";
import { readVariable, type Environment } from "../core/environment.ts";
import { textOf } from "../core/failure.ts";
import { echoService } from "./echo.ts";
import { gatewayService } from "./gateway.ts";
import { notesService } from "./notes.ts";
import { migrateCluster } from "./postgres-migration.ts";
import type { PostgresPlace } from "./postgres-place.ts";
import { postgresService } from "./postgres.ts";
import type { StackPlan } from "./stack-plan.ts";

/** What the services report to, and what they are reported as. */
interface ServiceContext {
  readonly supervision: Supervision;
  readonly history: History;
  /** Of the supervisor's own API. */
  readonly address: string;
  readonly release: Release | undefined;
  readonly upgrading: boolean;
  readonly onService: (view: ServiceView, before: ServiceState) => void;
  readonly onNotice: (sentence: string) => void;
}

/** Ends a start: `stop` stops the services, `halt` kills them. */
interface StartSignals {
  readonly stop: AbortSignal;
  readonly halt: AbortSignal;
}

/** Starts Postgres, the notes store, the echo and the gateway, in the order of their needs. */
export async function startServices(
  plan: StackPlan,
  context: ServiceContext,
  signals: StartSignals,
): Promise<ProcessRuntime> {
  const { home, secrets } = plan;
  const { supervision, history, onNotice } = context;
  const place = await migrateCluster(plan.postgres, {
    home,
    secrets,
    signal: signals.stop,
    onNotice: (sentence) => supervision.notice(sentence),
  });
  const runtime = runtimeOf(plan, place, context);
  supervision.show(runtime);
  history.act("supervisor", "supervisor-start", "hearth up");
  await startUnlessStopped(runtime, signals);
  await dropKilledRestores(plan.env, signals.stop, onNotice);
  return runtime;
}

function runtimeOf(
  plan: StackPlan,
  place: PostgresPlace,
  context: ServiceContext,
): ProcessRuntime {
  const { home, ports, secrets } = plan;
  const { restarts } = plan.config.config;
  const { supervision, history, release } = context;
  const specs = specsOf(plan, place);
  retainServices(
    supervision.alerting,
    specs.map(({ name }) => name),
  );
  return new ProcessRuntime({
    specs,
    logDirectory: home.logs,
    policy: {
      max: restarts.max,
      perMs: restarts.per,
      firstWaitMs: restarts.first_wait,
      longestWaitMs: restarts.longest_wait,
    },
    runFile: home.runFile,
    supervisor: {
      pid: process.pid,
      startTime: startTimeOf(process.pid) ?? "",
      address: context.address,
      port: ports.supervisor,
      release: release?.id ?? null,
    },
    history,
    onTrouble: context.onNotice,
    upgrading: context.upgrading,
    fingerprintKey: secrets.saltKey,
    onChange: (view, before) => {
      alarmOfService(supervision.alerting, view);
      context.onService(view, before);
    },
  });
}

function specsOf(
  { home, ports, secrets, echo }: StackPlan,
  place: PostgresPlace,
): readonly ServiceSpec[] {
  return [
    postgresService(place, ports.postgres, secrets),
    notesService(home, ports.notes, secrets),
    ...(echo ? [echoService(home, ports.echo)] : []),
    gatewayService(home, ports, echo, secrets),
  ];
}

async function startUnlessStopped(
  runtime: ProcessRuntime,
  { stop, halt }: StartSignals,
): Promise<void> {
  const giveUp = () => void runtime.stop("stop requested").catch(() => {});
  halt.addEventListener("abort", () => runtime.halt(), { once: true });
  stop.addEventListener("abort", giveUp, { once: true });
  stop.throwIfAborted();
  await runtime.start();
  stop.removeEventListener("abort", giveUp);
}

/** A restore that was killed with its supervisor leaves a database, which must not prevent a start. */
async function dropKilledRestores(
  env: Environment,
  stop: AbortSignal,
  onNotice: (sentence: string) => void,
): Promise<void> {
  const databaseUrl = readVariable("RESTORE_DATABASE_URL", env) ?? "";
  try {
    const name = await dropLeftRestore(databaseUrl, stop);
    if (name !== undefined) {
      onNotice(`dropped the database ${name} of an interrupted restore.`);
    }
  } catch (error) {
    onNotice(
      `databases of interrupted restores could not be dropped: ${textOf(error)}`,
    );
  }
}
