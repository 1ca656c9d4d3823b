import { setTimeout as sleep } from "node:timers/promises";
import { openConsole, type Console } from "../console/console.ts";
import { MINUTE_MS, inWords } from "../core/duration.ts";
import type { Environment } from "../core/environment.ts";
import { Failure, textOf } from "../core/failure.ts";
import { answersOk } from "../supervisor/checks/http-get.ts";
import type { CheckState } from "../supervisor/checks/state.ts";
import type { CheckView } from "../supervisor/checks/watched.ts";
import {
  openHistory,
  tolerateFullDisk,
  type History,
} from "../supervisor/history/history.ts";
import { createHome, type Home } from "../supervisor/home/home.ts";
import { lockHome, startingOrStopping } from "../supervisor/home/lock.ts";
import type { Secrets } from "../supervisor/home/secrets.ts";
import {
  ownRelease,
  selectRelease,
  type Release,
} from "../supervisor/release/release.ts";
import { alreadyRunsSentence } from "../supervisor/release/version.ts";
import type { ProcessRuntime } from "../supervisor/runtimes/process/process-runtime.ts";
import {
  aliveIn,
  readRunFile,
} from "../supervisor/runtimes/process/run-file.ts";
import type {
  ServiceState,
  ServiceView,
} from "../supervisor/runtimes/runtime.ts";
import type { Status } from "../supervisor/status.ts";
import { Supervision } from "../supervisor/supervision.ts";
import { writeEchoConfig } from "./echo.ts";
import type { Ports } from "./ports.ts";
import { planStack, type StackPlan } from "./stack-plan.ts";
import { startServices } from "./stack-services.ts";

export interface StackOptions {
  readonly home: Home;
  readonly env: Environment;
  /** Whether to run the echo and give it an alias. */
  readonly echo: boolean;
  readonly onService: (view: ServiceView, before: ServiceState) => void;
  readonly onCheck: (view: CheckView, before: CheckState) => void;
  readonly onNotice: (sentence: string) => void;
  /** A stop was requested through the API. */
  readonly onStopRequested: (reason: string) => void;
  /** The release whose supervisor this one replaces; it takes over again if the start fails. */
  readonly upgradeFrom: Release | undefined;
  /** Facts about this start for the operator. */
  readonly notices: readonly string[];
  /** Aborted to cancel the start: services that already run are stopped. */
  readonly stop: AbortSignal;
  /** Aborted to kill all services. */
  readonly halt: AbortSignal;
}

export interface Stack {
  readonly ports: Ports;
  readonly secrets: Secrets;
  readonly addresses: {
    readonly gateway: string;
    readonly notes: string;
    readonly supervisor: string;
  };
  readonly status: () => Status;
  /** Whether the gateway can serve calls (its database is available). */
  readonly gatewayReady: boolean;
  /** Stops everything in reverse order, waiting for running calls and jobs. */
  readonly stop: (reason: string) => Promise<void>;
  /** Ends only the supervisor: another one takes over the services. */
  readonly leave: (reason: string) => Promise<void>;
}

/** Thrown when another supervisor runs on the same home. */
export class AlreadyRunning extends Failure {}

const LOOPBACK = "127.0.0.1";
const READY_WITHIN_MS = 30_000;
const ANSWER_WITHIN_MS = 2_000;
const MAINTAIN_EVERY_MS = MINUTE_MS;

/** Starts the embedded stack with its supervision. Throws a Failure that says what to do. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const { home } = options;
  // Files of this process and its children are not readable by other users.
  process.umask(0o077);
  createHome(home);
  const lock = lockHome(home.lock);
  if (lock === undefined) {
    throw alreadyRunning(home);
  }
  let history: History | undefined;
  try {
    history = tolerateFullDisk(
      openHistory(home.history, Date.now, options.onNotice),
      options.onNotice,
    );
    return await startLocked(options, history, () => lock.release());
  } catch (error) {
    history?.close();
    lock.release();
    throw error;
  }
}

async function startLocked(
  options: StackOptions,
  history: History,
  release: () => void,
): Promise<Stack> {
  const { home, onNotice } = options;
  const own = ownRelease();
  const upgrading = options.upgradeFrom !== undefined;
  const plan = await planStack(options);
  const { ports, env, config } = plan;
  writeEchoConfig(home, plan.echo ? ports.echo : undefined);
  const supervision = new Supervision({
    home,
    env,
    config,
    history,
    onCheck: options.onCheck,
    onNotice,
  });
  const console = await openConsole(supervision, {
    host: LOOPBACK,
    port: ports.supervisor,
    onStopRequested: options.onStopRequested,
  });
  let stack: RunningStack;
  try {
    const runtime = await startServices(
      plan,
      {
        supervision,
        history,
        address: console.address,
        release: own,
        upgrading,
        onService: options.onService,
        onNotice,
      },
      options,
    );
    const parts = { supervision, runtime, console, history, release };
    stack = new RunningStack(plan, parts, onNotice);
  } catch (error) {
    await console.close();
    throw error;
  }
  await stack.waitForGateway(options.stop);
  if (upgrading && !stack.gatewayReady) {
    await stack.abandon();
    throw new Failure(
      `the gateway was not ready for calls within ${inWords(READY_WITHIN_MS)}. Run \`hearth logs gateway\` for the reason.`,
    );
  }
  if (own !== undefined) {
    selectRelease(home, own.id);
  }
  supervision.start();
  return stack;
}

interface StackParts {
  readonly supervision: Supervision;
  readonly runtime: ProcessRuntime;
  readonly console: Console;
  readonly history: History;
  /** Releases the lock of the home. */
  readonly release: () => void;
}

class RunningStack implements Stack {
  readonly ports: Ports;
  readonly secrets: Secrets;
  readonly addresses: Stack["addresses"];
  readonly #parts: StackParts;
  readonly #maintenance: NodeJS.Timeout;
  #gatewayReady = false;

  constructor(
    { home, ports, secrets }: StackPlan,
    parts: StackParts,
    onNotice: (sentence: string) => void,
  ) {
    this.ports = ports;
    this.secrets = secrets;
    this.addresses = {
      gateway: `http://${LOOPBACK}:${ports.gateway}`,
      notes: `http://${LOOPBACK}:${ports.notes}`,
      supervisor: parts.console.address,
    };
    this.#parts = parts;
    this.#maintenance = setInterval(
      () => maintainFiles(parts.runtime, home, onNotice),
      MAINTAIN_EVERY_MS,
    );
  }

  get gatewayReady(): boolean {
    return this.#gatewayReady;
  }

  status(): Status {
    return this.#parts.supervision.status();
  }

  async stop(reason: string): Promise<void> {
    await this.#end(reason, () => this.#parts.runtime.stop(reason));
  }

  async leave(reason: string): Promise<void> {
    await this.#end(reason, async () => {});
  }

  async waitForGateway(stop: AbortSignal): Promise<void> {
    this.#gatewayReady = await isReadyInTime(this.addresses.gateway, stop);
  }

  /** Ends the supervisor of a start that failed; the caller releases the rest. */
  async abandon(): Promise<void> {
    clearInterval(this.#maintenance);
    await this.#parts.console.close();
  }

  async #end(reason: string, stopServices: () => Promise<void>): Promise<void> {
    const { supervision, console, history, release } = this.#parts;
    await supervision.rest();
    clearInterval(this.#maintenance);
    history.act("supervisor", "supervisor-stop", reason);
    await stopServices();
    await console.close();
    history.close();
    release();
  }
}

/** Keeps logs small and the run file in place; a failure must not end the supervisor. */
function maintainFiles(
  runtime: ProcessRuntime,
  { runFile }: Home,
  onNotice: (sentence: string) => void,
): void {
  const attempt = (work: () => void, trouble: string) => {
    try {
      work();
    } catch (error) {
      onNotice(`${trouble}: ${textOf(error)}`);
    }
  };
  attempt(() => runtime.rotateLogs(), "logs cannot be rotated");
  attempt(() => runtime.keepRunFile(), `${runFile} cannot be read`);
}

function alreadyRunning(home: Home): AlreadyRunning {
  // The file may still name a killed supervisor while its successor starts.
  const supervisor = aliveIn(readRunFile(home.runFile).supervisor);
  return new AlreadyRunning(
    supervisor === undefined
      ? startingOrStopping(home.root)
      : alreadyRunsSentence(supervisor),
  );
}

async function isReadyInTime(
  gateway: string,
  stop: AbortSignal,
): Promise<boolean> {
  const deadline = performance.now() + READY_WITHIN_MS;
  while (performance.now() < deadline && !stop.aborted) {
    const ready = await answersOk(
      `${gateway}/health/readiness`,
      AbortSignal.timeout(ANSWER_WITHIN_MS),
    ).catch(() => false);
    if (ready) {
      return true;
    }
    await sleep(100);
  }
  return false;
}
