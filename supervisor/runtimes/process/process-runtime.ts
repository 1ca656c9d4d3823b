import { createHmac } from "node:crypto";
import { join } from "node:path";
import { Failure, textOf } from "../../../core/failure.ts";
import { freeBytesOf } from "../../../core/free-bytes.ts";
import type { History } from "../../history/history.ts";
import type {
  ServiceState,
  ServiceView,
  StartableRuntime,
} from "../runtime.ts";
import { looksWell } from "./health.ts";
import { handOver } from "./hand-over.ts";
import type { ProcessIdentity } from "./identity.ts";
import { lastLines, rotateAll } from "./log-files.ts";
import type { RestartPolicy } from "./restart-budget.ts";
import {
  aliveIn,
  readRunFile,
  writeRunFile,
  type RunFile,
} from "./run-file.ts";
import { createService, type Service } from "./service.ts";
import { type ServiceSpec } from "./service-spec.ts";
import { statsOf } from "./stats.ts";
import { stopProcess } from "./stop.ts";

export interface ProcessRuntimeOptions {
  readonly specs: readonly ServiceSpec[];
  readonly logDirectory: string;
  readonly policy: RestartPolicy;
  readonly runFile: string;
  readonly supervisor: NonNullable<RunFile["supervisor"]>;
  readonly history: History;
  /** Something went wrong that does not stop anything (a full disk). */
  readonly onTrouble: (sentence: string) => void;
  /**
   * Another release's supervisor ran until now: services are switched one after the other, and when one fails the others are
   * left as they are.
   */
  readonly upgrading: boolean;
  /** Keys the fingerprints of how services were started, so that they tell nothing about secrets. */
  readonly fingerprintKey: string;
  readonly onChange: (view: ServiceView, before: ServiceState) => void;
}

export type ProcessRuntime = StartableRuntime & {
  readonly logs: (name: string, lines: number) => readonly string[];
  /** Ends everything at once (a second Ctrl-C). */
  readonly halt: () => void;
  /** Copies and empties logs that grew too large, those of programs that no longer run as well. */
  readonly rotateLogs: () => void;
  /** Writes run.json again when it was damaged or deleted, or could not be written: every command finds the supervisor by it. */
  readonly keepRunFile: () => void;
};

async function oneByOne(
  services: readonly Service[],
  work: (service: Service) => Promise<void>,
): Promise<void> {
  for (const service of services) {
    await work(service);
  }
}

/** Postgres, the largest, adds a segment of 16 MB to its log when it starts after a crash. */
const ROOM_TO_START = 32 * 1024 * 1024;

/** What is restarted because it does not answer will hardly finish anything. */
const SICK_STOP_WITHIN_MS = 15_000;

/** Runs services as plain processes of this machine, in order, and keeps them running. */
export function createProcessRuntime(
  options: ProcessRuntimeOptions,
): ProcessRuntime {
  const { specs, history, runFile } = options;
  const before = readRunFile(runFile);
  const waiters = new Set<() => void>();
  // In memory too: a full disk must not make the budget endless.
  const restarts = new Map(
    specs.map(({ name }) => [name, [...history.restartsOf(name)]]),
  );
  let starting = true;
  let isRunFileOld = false;
  const services = new Map<string, Service>(
    specs.map((spec) => [
      spec.name,
      createService(spec, logFile(spec.name), options.policy, {
        changed,
        restarting: (name, reason) => {
          restarts.get(name)?.push(Date.now());
          history.act(name, "restart", reason);
        },
        earlierRestarts: (name) => restarts.get(name) ?? [],
        isDiskFull: () => freeBytesOf(options.logDirectory) < ROOM_TO_START,
        untilRunning,
      }),
    ]),
  );

  function logFile(name: string): string {
    return join(options.logDirectory, `${name}.log`);
  }

  function views(): readonly ServiceView[] {
    return [...services.values()].map((service) => service.view());
  }

  function named(name: string): Service {
    const service = services.get(name);
    if (service === undefined) {
      throw new Failure(
        `no service is called "${name}": there are ${[...services.keys()].join(", ")}.`,
      );
    }
    return service;
  }

  function changed(view: ServiceView, from: ServiceState): void {
    if (from !== view.state) {
      history.serviceChanged(view.name, from, view.state, view.reason);
    }
    try {
      writeRun();
    } catch (error) {
      isRunFileOld = true;
      options.onTrouble(`${runFile} cannot be written: ${textOf(error)}`);
    }
    options.onChange(view, from);
    for (const look of waiters) {
      look();
    }
  }

  /** Notes who runs now, so that a later supervisor finds them. Entries not started yet keep what an earlier one wrote. */
  function writeRun(supervisor: RunFile["supervisor"] = options.supervisor) {
    const entries = [...services.values()].map((service) => {
      const { name, address, port } = service.spec;
      const identity = service.identity();
      const earlier = before.services[name];
      const view = service.view();
      const untouched =
        starting &&
        identity === undefined &&
        (view.state === "stopped" || view.state === "waiting");
      return [
        name,
        untouched && earlier !== undefined
          ? earlier
          : {
              pid: identity?.pid ?? null,
              startTime: identity?.startTime ?? null,
              address,
              port,
              fingerprint: fingerprintOf(service.spec),
              successorFile: service.spec.successorFile ?? null,
            },
      ] as const;
    });
    writeRunFile(runFile, {
      supervisor,
      services: Object.fromEntries(entries),
    });
    isRunFileOld = false;
  }

  function fingerprintOf(spec: ServiceSpec): string {
    const { file, args, cwd, env } = spec.plan();
    const telling = Object.entries(env)
      .filter(([name]) =>
        /(_KEY|_URL|_HOST|_PORT|_PASSWORD|_FILE|_DIR|_CONFIG)$/.test(name),
      )
      .toSorted();
    return createHmac("sha256", options.fingerprintKey)
      .update(JSON.stringify([file, args, cwd, telling]))
      .digest("hex")
      .slice(0, 32);
  }

  function untilRunning(
    names: readonly string[],
    signal: AbortSignal,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const look = () => {
        if (names.every((name) => named(name).view().state === "running")) {
          waiters.delete(look);
          resolve();
        }
      };
      signal.addEventListener(
        "abort",
        () => {
          waiters.delete(look);
          reject(new Failure("told to stop"));
        },
        { once: true },
      );
      waiters.add(look);
      look();
    });
  }

  /** The process that an earlier supervisor left, when it is surely ours and well; one that is not well is stopped. */
  async function leftover(
    service: Service,
  ): Promise<ProcessIdentity | undefined> {
    const { spec } = service;
    const entry = aliveIn(before.services[spec.name]);
    if (entry === undefined) {
      return undefined;
    }
    const identity = { pid: entry.pid, startTime: entry.startTime };
    const same = entry.fingerprint === fingerprintOf(spec);
    const well = await looksWell(spec, new AbortController().signal).catch(
      () => false,
    );
    if (same && well) {
      history.act(
        spec.name,
        "adopt",
        `pid ${identity.pid} of an earlier supervisor is healthy`,
      );
      return identity;
    }
    if (well && entry.successorFile != null) {
      const successor = await handOver(
        identity,
        entry.successorFile,
        spec,
        logFile(spec.name),
      );
      if (successor !== undefined) {
        history.act(
          spec.name,
          "adopt",
          `pid ${identity.pid} of an earlier supervisor handed over to pid ${successor.pid}`,
        );
        return successor;
      }
      if (options.upgrading) {
        throw new Failure(
          `the ${spec.name} of this release did not take over: \`hearth logs ${spec.name}\` shows why.`,
        );
      }
    }
    history.act(
      spec.name,
      "stop",
      `pid ${identity.pid} of an earlier supervisor ${same ? "is not healthy" : "was started with other settings"}`,
    );
    await stopProcess(identity, spec.stopSignal, spec.stopWithinMs);
    return undefined;
  }

  async function stopAll(reason: string): Promise<void> {
    const stopped = new Map<string, Promise<void>>();
    const stop = (service: Service): Promise<void> => {
      const { name } = service.spec;
      const known = stopped.get(name);
      if (known !== undefined) {
        return known;
      }
      const users = [...services.values()].filter(({ spec }) =>
        [...spec.needs, ...spec.uses].includes(name),
      );
      const done = Promise.all(users.map(stop)).then(() =>
        service.stop(reason),
      );
      stopped.set(name, done);
      return done;
    };
    await Promise.all([...services.values()].map(stop));
  }

  return {
    list: views,
    inspect: (name) => services.get(name)?.view(),
    look: async (name) => services.get(name)?.view(),
    stats: (name) => {
      const identity = named(name).identity();
      return identity === undefined ? undefined : statsOf(identity.pid);
    },
    logs: (name, lines) => lastLines(logFile(named(name).spec.name), lines),
    restart: async (name, reason, by) => {
      const service = named(name);
      await service.spec.validate?.();
      if (by === "operator") {
        restarts.set(name, []);
        history.act(name, "restart-asked", reason);
      }
      await service.restart(
        reason,
        by === "supervisor" ? SICK_STOP_WITHIN_MS : undefined,
      );
    },
    start: async () => {
      // What no longer belongs to the stack (the echo after --no-echo) is stopped, not left.
      await Promise.all([
        ...Object.entries(before.services)
          .filter(([name]) => !services.has(name))
          .map(([, { pid, startTime }]) =>
            pid === null || startTime === null
              ? undefined
              : stopProcess({ pid, startTime }, "SIGTERM", 10_000),
          ),
      ]);
      const bringUp = async (service: Service) => {
        const adopted = await leftover(service);
        if (adopted === undefined) {
          restarts.set(service.spec.name, []);
          history.act(service.spec.name, "start", "hearth up");
        }
        await service.start(adopted);
      };
      const ups = options.upgrading
        ? [oneByOne([...services.values()], bringUp)]
        : [...services.values()].map(bringUp);
      try {
        await Promise.all(ups);
      } catch (error) {
        for (const up of ups) {
          up.catch(() => {});
        }
        // In an upgrade the release before takes over what still serves.
        if (!options.upgrading) {
          await stopAll("another service did not start");
        }
        await Promise.allSettled(ups);
        starting = false;
        if (!options.upgrading) {
          writeRun(null);
        }
        throw error;
      }
      starting = false;
      writeRun();
    },
    stop: async (reason) => {
      await stopAll(reason);
      writeRun(null);
    },
    halt: () => {
      for (const service of services.values()) {
        service.halt();
      }
    },
    keepRunFile: () => {
      const { supervisor } = readRunFile(runFile);
      if (isRunFileOld || supervisor?.pid !== options.supervisor.pid) {
        writeRun();
      }
    },
    rotateLogs: () => rotateAll(options.logDirectory),
  };
}
