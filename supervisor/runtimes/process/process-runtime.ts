import { join } from "node:path";
import { Failure, textOf } from "../../../core/failure.ts";
import { freeBytesOf } from "../../../core/free-bytes.ts";
import type { History } from "../../history/history.ts";
import type {
  ServiceState,
  ServiceStats,
  ServiceView,
  StartableRuntime,
} from "../runtime.ts";
import { adoptProcess } from "./adoption.ts";
import { fingerprintOf, keyFingerprints } from "./fingerprint.ts";
import type { ProcessIdentity } from "./identity.ts";
import { lastLines, rotateAll } from "./log-files.ts";
import type { RestartPolicy } from "./restart-budget.ts";
import { readRunFile, writeRunFile, type RunFile } from "./run-file.ts";
import { Service } from "./service.ts";
import type { ServiceSpec } from "./service-spec.ts";
import { statsOf } from "./stats.ts";
import { stopProcess } from "./stop.ts";

interface ProcessRuntimeOptions {
  readonly specs: readonly ServiceSpec[];
  readonly logDirectory: string;
  readonly policy: RestartPolicy;
  readonly runFile: string;
  readonly supervisor: NonNullable<RunFile["supervisor"]>;
  readonly history: History;
  /** A problem that stops nothing, such as a full disk. */
  readonly onTrouble: (sentence: string) => void;
  /**
   * The supervisor of another release ran before: services are switched one after the other; if one fails, the others are not
   * touched.
   */
  readonly upgrading: boolean;
  /** Key of the fingerprints of how services were started. */
  readonly fingerprintKey: string;
  readonly onChange: (view: ServiceView, before: ServiceState) => void;
}

/** Postgres, the largest service, adds a segment of 16 MB to its log when it starts after a crash. */
const MIN_BYTES_TO_START = 32 * 1024 * 1024;

/** A service that is restarted because it does not answer will hardly finish anything. */
const UNHEALTHY_STOP_TIMEOUT_MS = 15_000;

/** Runs services as plain processes of this machine, in order, and keeps them running. */
export class ProcessRuntime implements StartableRuntime {
  readonly #options: ProcessRuntimeOptions;
  readonly #services: ReadonlyMap<string, Service>;
  /** As the previous supervisor left it. */
  readonly #before: RunFile;
  readonly #waiters = new Set<() => void>();
  /** In memory, too: a full disk must not make the budget unlimited. */
  readonly #restarts: Map<string, number[]>;
  #starting = true;
  #isRunFileOld = false;

  constructor(options: ProcessRuntimeOptions) {
    const { specs, history, policy, logDirectory, runFile } = options;
    this.#options = options;
    this.#before = readRunFile(runFile);
    this.#restarts = new Map(
      specs.map(({ name }) => [name, [...history.restartsOf(name)]]),
    );
    const events = {
      changed: (view: ServiceView, from: ServiceState) =>
        this.#onChanged(view, from),
      restarting: (name: string, reason: string) => {
        this.#restarts.get(name)?.push(Date.now());
        history.act(name, "restart", reason);
      },
      earlierRestarts: (name: string) => this.#restarts.get(name) ?? [],
      isDiskFull: () => freeBytesOf(logDirectory) < MIN_BYTES_TO_START,
      untilRunning: (names: readonly string[], signal: AbortSignal) =>
        this.#untilRunning(names, signal),
    };
    this.#services = new Map(
      specs.map((spec) => [
        spec.name,
        new Service(spec, this.#logFile(spec.name), policy, events),
      ]),
    );
  }

  list(): readonly ServiceView[] {
    return [...this.#services.values()].map((service) => service.view());
  }

  inspect(name: string): ServiceView | undefined {
    return this.#services.get(name)?.view();
  }

  async probe(name: string): Promise<ServiceView | undefined> {
    return this.inspect(name);
  }

  stats(name: string): ServiceStats | undefined {
    const service = this.#named(name);
    const identity = service.identity();
    return identity === undefined
      ? undefined
      : statsOf(identity.pid, service.spec.hasWorkers);
  }

  logs(name: string, lines: number): readonly string[] {
    return lastLines(this.#logFile(this.#named(name).spec.name), lines);
  }

  async restart(
    name: string,
    reason: string,
    by: "operator" | "supervisor",
  ): Promise<void> {
    const service = this.#named(name);
    await service.spec.validate?.();
    if (by === "operator") {
      this.#restarts.set(name, []);
      this.#options.history.act(name, "restart-asked", reason);
    }
    await service.restart(
      reason,
      by === "supervisor" ? UNHEALTHY_STOP_TIMEOUT_MS : undefined,
    );
  }

  async start(): Promise<void> {
    const { upgrading } = this.#options;
    await this.#stopRemovedServices();
    const services = [...this.#services.values()];
    const ups = upgrading
      ? [this.#bringUpInTurn(services)]
      : services.map((service) => this.#bringUp(service));
    try {
      await Promise.all(ups);
    } catch (error) {
      for (const up of ups) {
        up.catch(() => {});
      }
      // In an upgrade, the previous release takes over the services that still run.
      if (!upgrading) {
        await this.#stopAll("another service did not start");
      }
      await Promise.allSettled(ups);
      this.#starting = false;
      if (!upgrading) {
        this.#writeRunFile(null);
      }
      throw error;
    }
    this.#starting = false;
    this.#writeRunFile();
  }

  async stop(reason: string): Promise<void> {
    await this.#stopAll(reason);
    this.#writeRunFile(null);
  }

  /** Ends everything at once (a second Ctrl-C). */
  halt(): void {
    for (const service of this.#services.values()) {
      service.halt();
    }
  }

  /** Writes run.json if it was damaged, deleted or not writable before: every command finds the supervisor by it. */
  readonly keepRunFile = (): void => {
    const { runFile, supervisor } = this.#options;
    const written = readRunFile(runFile).supervisor;
    if (this.#isRunFileOld || written?.pid !== supervisor.pid) {
      this.#writeRunFile();
    }
  };

  /** Rotates logs that have grown too large, including those of programs that no longer run. */
  readonly rotateLogs = (): void => rotateAll(this.#options.logDirectory);

  /** A service that is no longer configured (the echo after --no-echo) is stopped. */
  async #stopRemovedServices(): Promise<void> {
    await Promise.all(
      Object.entries(this.#before.services)
        .filter(([name]) => !this.#services.has(name))
        .map(([, { pid, startTime }]) =>
          pid === null || startTime === null
            ? undefined
            : stopProcess({ pid, startTime }, "SIGTERM", 10_000),
        ),
    );
  }

  async #bringUpInTurn(services: readonly Service[]): Promise<void> {
    for (const service of services) {
      await this.#bringUp(service);
    }
  }

  async #bringUp(service: Service): Promise<void> {
    const { history, fingerprintKey, upgrading } = this.#options;
    const { spec } = service;
    const logFile = this.#logFile(spec.name);
    const adopted: ProcessIdentity | undefined = await adoptProcess(
      spec,
      this.#before.services[spec.name],
      { history, logFile, fingerprintKey, upgrading },
    );
    if (adopted === undefined) {
      this.#restarts.set(spec.name, []);
      history.act(spec.name, "start", "hearth up");
    }
    await service.start(adopted);
  }

  /** Stops each service after those that use it. */
  async #stopAll(reason: string): Promise<void> {
    const services = [...this.#services.values()];
    const stopped = new Map<string, Promise<void>>();
    const stop = (service: Service): Promise<void> => {
      const { name } = service.spec;
      const known = stopped.get(name);
      if (known !== undefined) {
        return known;
      }
      const users = services.filter(({ spec }) =>
        [...spec.needs, ...spec.uses].includes(name),
      );
      const done = Promise.all(users.map(stop)).then(() =>
        service.stop(reason),
      );
      stopped.set(name, done);
      return done;
    };
    await Promise.all(services.map(stop));
  }

  #logFile(name: string): string {
    return join(this.#options.logDirectory, `${name}.log`);
  }

  #named(name: string): Service {
    const service = this.#services.get(name);
    if (service === undefined) {
      throw new Failure(
        `service "${name}" not found; there are ${[...this.#services.keys()].join(", ")}.`,
      );
    }
    return service;
  }

  #onChanged(view: ServiceView, from: ServiceState): void {
    const { history, onChange } = this.#options;
    if (from !== view.state) {
      history.serviceChanged(view.name, from, view.state, view.reason);
    }
    this.#writeRunFile();
    onChange(view, from);
    for (const check of this.#waiters) {
      check();
    }
  }

  /**
   * Records what runs, so that a later supervisor finds it. Entries of services not started yet are kept as they were. A full disk
   * must neither end the supervisor nor make its stop a crash: what cannot be written now is written by `keepRunFile`.
   */
  #writeRunFile(
    supervisor: RunFile["supervisor"] = this.#options.supervisor,
  ): void {
    const { runFile, onTrouble } = this.#options;
    const entries = [...this.#services.values()].map((service) => {
      const { name } = service.spec;
      const { state } = service.view();
      const earlier = this.#before.services[name];
      const untouched =
        this.#starting &&
        service.identity() === undefined &&
        (state === "stopped" || state === "waiting");
      const entry =
        untouched && earlier !== undefined ? earlier : this.#entryOf(service);
      return [name, entry] as const;
    });
    try {
      writeRunFile(runFile, {
        supervisor,
        services: Object.fromEntries(entries),
      });
      this.#isRunFileOld = false;
    } catch (error) {
      this.#isRunFileOld = true;
      onTrouble(`cannot write ${runFile}: ${textOf(error)}`);
    }
  }

  #entryOf(service: Service): RunFile["services"][string] {
    const { spec } = service;
    const { fingerprintKey } = this.#options;
    const identity = service.identity();
    return {
      pid: identity?.pid ?? null,
      startTime: identity?.startTime ?? null,
      address: spec.address,
      port: spec.port,
      fingerprint: fingerprintOf(spec, fingerprintKey),
      keys: keyFingerprints(spec.plan().env, fingerprintKey),
      successorFile: spec.successorFile ?? null,
    };
  }

  #untilRunning(names: readonly string[], signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const check = () => {
        const views = names.map((name) => this.#named(name).view());
        if (views.every(({ state }) => state === "running")) {
          this.#waiters.delete(check);
          resolve();
        }
      };
      signal.addEventListener(
        "abort",
        () => {
          this.#waiters.delete(check);
          reject(new Failure("stop requested"));
        },
        { once: true },
      );
      this.#waiters.add(check);
      check();
    });
  }
}
