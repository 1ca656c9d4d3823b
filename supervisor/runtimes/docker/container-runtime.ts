import { setTimeout as sleep } from "node:timers/promises";
import { inWords } from "../../../core/duration.ts";
import { Failure } from "../../../core/failure.ts";
import { forOwnStack } from "../../../core/installation.ts";
import { isWithin } from "../../../core/clock-jumps.ts";
import type { History } from "../../history/history.ts";
import { lastLinesOf } from "../last-lines.ts";
import { RegularProbe, unknownEngine } from "../regular-probe.ts";
import type {
  Runtime,
  ServiceState,
  ServiceStats,
  ServiceView,
} from "../runtime.ts";
import {
  containerName,
  OUR_LABEL,
  readContainer,
  readNames,
  readStats,
} from "./container-view.ts";
import type { Engine, EngineAnswer } from "./engine.ts";
import { KnownContainers } from "./known-containers.ts";
import { withLastEnd } from "./last-end.ts";
import { readLogFrames } from "./log-frames.ts";
import { hadOomEvent } from "./oom-events.ts";

interface ContainerRuntimeOptions {
  readonly engine: Engine;
  /** Prefix of the names of containers. */
  readonly prefix: string;
  readonly history: History;
  readonly onChange: (view: ServiceView, before: ServiceState) => void;
  readonly onTrouble: (sentence: string) => void;
  /** Throws if a service could not start again; it is not restarted then. */
  readonly validate?: (name: string) => Promise<void>;
  /** Times in milliseconds; tests shorten them. */
  readonly pace?: Partial<Pace>;
}

interface Pace {
  /** Between two probes of all containers. */
  readonly probe: number;
  /** Between two measurements of memory and CPU. */
  readonly measure: number;
  /** A container that a deployment replaces is absent for less. */
  readonly absentAfter: number;
  /** The latest state counts for this long while the engine does not answer. */
  readonly unknownAfter: number;
}

const DEFAULT_PACE: Pace = {
  probe: 5_000,
  measure: 30_000,
  absentAfter: 120_000,
  unknownAfter: 15_000,
};
const ANSWER_TIMEOUT_MS = 5_000;
const LOGS_TIMEOUT_MS = 10_000;
/** An unhealthy service will hardly finish anything; for an operator the gateway may drain (it ends earlier without calls). */
const STOP_SECONDS = { supervisor: 15, operator: 150 } as const;
/** A restart that did not help must not delay the next one for long. */
const HEALTHY_TIMEOUT_MS = { supervisor: 60_000, operator: 120_000 } as const;
const HEALTHY_POLL_MS = 500;
/** The proxy in front of the engine: it cannot be inspected through itself. */
const GATE = "socket-proxy";

/** Watches and restarts the containers of the deployment on this host; it neither creates nor removes any. */
export class ContainerRuntime implements Runtime {
  readonly #options: ContainerRuntimeOptions;
  readonly #engine: Engine;
  readonly #pace: Pace;
  readonly #supervisedSince = Date.now();
  readonly #known: KnownContainers;
  readonly #regular: RegularProbe;
  #measuredAt = 0;

  constructor(options: ContainerRuntimeOptions) {
    const { engine, history, onChange, onTrouble } = options;
    const pace = { ...DEFAULT_PACE, ...options.pace };
    const { absentAfter, unknownAfter } = pace;
    this.#options = options;
    this.#engine = engine;
    this.#pace = pace;
    this.#known = new KnownContainers({ history, onChange, absentAfter });
    this.#regular = new RegularProbe({
      probe: () => this.#probeAll(),
      every: pace.probe,
      unknownAfter,
      onTrouble,
    });
  }

  /** Probes once, then regularly; never throws. */
  start(): Promise<void> {
    return this.#regular.start();
  }

  async close(): Promise<void> {
    this.#engine.close();
    await this.#regular.close();
  }

  list(): readonly ServiceView[] {
    const silence = this.#regular.silence();
    const views = this.#known
      .names()
      .flatMap((name) => this.#known.get(name) ?? []);
    return views.length === 0 && silence !== undefined
      ? [unknownEngine("docker", silence)]
      : views.map((view) => this.#displayed(view));
  }

  inspect(name: string): ServiceView | undefined {
    const view = this.#known.get(name);
    return view === undefined ? undefined : this.#displayed(view);
  }

  async probe(name: string): Promise<ServiceView | undefined> {
    const view = await this.#probe(name);
    if (view !== undefined) {
      this.#known.note(view);
    } else {
      this.#known.miss(name);
    }
    return this.#known.get(name);
  }

  stats(name: string): ServiceStats | undefined {
    return this.#known.stats(name);
  }

  async logs(name: string, lines: number): Promise<readonly string[]> {
    const answer = await this.#engine.ask(
      "GET",
      `${this.#pathOf(name)}/logs?stdout=1&stderr=1&tail=${lines}`,
      LOGS_TIMEOUT_MS,
    );
    if (answer.status !== 200) {
      throw rejected(name, answer);
    }
    return lastLinesOf(readLogFrames(answer.body), lines);
  }

  async restart(
    name: string,
    reason: string,
    by: "operator" | "supervisor",
  ): Promise<void> {
    const { validate, history } = this.#options;
    if (this.#known.get(name) === undefined) {
      throw new Failure(
        `container "${name}" not found; there are ${this.#known.names().join(", ")}.`,
      );
    }
    await validate?.(name);
    if (by === "operator") {
      history.act(name, "restart-asked", reason);
    }
    const seconds = STOP_SECONDS[by];
    this.#known.order(name, reason);
    try {
      const answer = await this.#engine.ask(
        "POST",
        `${this.#pathOf(name)}/restart?t=${seconds}`,
        seconds * 1000 + HEALTHY_TIMEOUT_MS[by],
      );
      if (answer.status !== 204) {
        throw rejected(name, answer);
      }
      await this.#untilRunning(name, HEALTHY_TIMEOUT_MS[by]);
    } finally {
      this.#known.endOrder(name);
    }
  }

  #containerOf(service: string): string {
    return containerName(service, this.#options.prefix);
  }

  #pathOf(service: string): string {
    return `/containers/${encodeURIComponent(this.#containerOf(service))}`;
  }

  async #probeAll(): Promise<void> {
    await this.#updateAll();
    if (isWithin(this.#measuredAt, this.#pace.measure, Date.now())) {
      return;
    }
    this.#measuredAt = Date.now();
    await this.#measure();
  }

  async #updateAll(): Promise<void> {
    const filters = encodeURIComponent(JSON.stringify({ label: [OUR_LABEL] }));
    const answer = await this.#engine.ask(
      "GET",
      `/containers/json?all=1&filters=${filters}`,
      ANSWER_TIMEOUT_MS,
    );
    const names = readNames(textIn(answer), this.#options.prefix).filter(
      (name) => name !== GATE,
    );
    const found = await Promise.all(names.map((name) => this.#probe(name)));
    const views = found.filter((view) => view !== undefined);
    for (const view of views) {
      this.#known.note(view);
    }
    const present = new Set(views.map(({ name }) => name));
    for (const name of this.#known.names()) {
      if (!present.has(name)) {
        this.#known.miss(name);
      }
    }
  }

  /** The current state of one container; undefined if it does not exist or does not belong to the deployment. */
  async #probe(name: string): Promise<ServiceView | undefined> {
    const answer = await this.#engine.ask(
      "GET",
      `${this.#pathOf(name)}/json`,
      ANSWER_TIMEOUT_MS,
    );
    // The proxy denies access to containers with other names.
    if (answer.status === 404 || answer.status === 403) {
      return undefined;
    }
    const view = readContainer(
      textIn(answer),
      this.#supervisedSince,
      this.#options.prefix,
    );
    return view === undefined
      ? undefined
      : withLastEnd(view, this.#known.get(name), (since, until) => {
          const id = view.container?.id ?? "";
          const run = { name: this.#containerOf(name), id, since, until };
          return hadOomEvent(this.#engine, run, ANSWER_TIMEOUT_MS);
        });
  }

  async #measure(): Promise<void> {
    for (const name of this.#known.names()) {
      if (this.#known.get(name)?.pid === null) {
        continue;
      }
      const answer = await this.#engine.ask(
        "GET",
        `${this.#pathOf(name)}/stats?stream=false&one-shot=true`,
        ANSWER_TIMEOUT_MS,
      );
      if (answer.status === 200) {
        this.#known.measured(name, readStats(textIn(answer)));
      }
    }
  }

  /** The latest state, unless it is too old. */
  #displayed(view: ServiceView): ServiceView {
    const silence = this.#regular.silence();
    return silence === undefined
      ? view
      : { ...view, state: "unknown", ...silence };
  }

  async #untilRunning(name: string, timeoutMs: number): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    let view: ServiceView | undefined;
    do {
      view = await this.probe(name);
      if (view?.state === "running" && view.container?.health !== "unhealthy") {
        return;
      }
      await sleep(HEALTHY_POLL_MS);
    } while (performance.now() < deadline && view?.state !== "absent");
    throw new Failure(
      `${name} was restarted but is not healthy after ${inWords(timeoutMs)}${view?.reason == null ? "" : ` (${view.reason})`}: run \`hearth logs ${name}\`.`,
    );
  }
}

function rejected(name: string, { status, body }: EngineAnswer): Failure {
  if (status === 404) {
    return new Failure(
      forOwnStack(
        `${name}: container not found; run \`npm run deploy -- up --refresh\`.`,
        process.env,
      ),
    );
  }
  if (status === 403) {
    return new Failure(
      `${name} is not a service of Hearth on this host: run \`hearth status\` for a list.`,
    );
  }
  return new Failure(
    `Docker answered ${status} for ${name}${wordsIn(body)}: run \`docker ps -a\` on this host.`,
  );
}

function textIn({ status, body }: EngineAnswer): string {
  if (status !== 200) {
    throw new Failure(
      `Docker answered ${status}${wordsIn(body)}: run \`docker info\` on this host.`,
    );
  }
  return body.toString("utf8");
}

function wordsIn(body: Buffer): string {
  const words = body.toString("utf8").trim().slice(0, 300);
  return words === "" ? "" : `: ${words}`;
}
