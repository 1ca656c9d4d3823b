import { setTimeout as wait } from "node:timers/promises";
import { inWords } from "../../../core/duration.ts";
import { Failure, textOf } from "../../../core/failure.ts";
import { isWithin } from "../../moments.ts";
import type { History } from "../../history/history.ts";
import type { Runtime, ServiceState, ServiceView } from "../runtime.ts";
import {
  containerName,
  OUR_LABEL,
  readContainer,
  readNames,
  readStats,
} from "./container-view.ts";
import type { Engine, EngineAnswer } from "./engine.ts";
import { createKnownContainers } from "./known-containers.ts";
import { readLogFrames } from "./log-frames.ts";

export interface ContainerRuntimeOptions {
  readonly engine: Engine;
  /** What the names of the containers begin with. */
  readonly prefix: string;
  readonly history: History;
  readonly onChange: (view: ServiceView, before: ServiceState) => void;
  readonly onTrouble: (sentence: string) => void;
  /** Throws what would keep a service from starting again: it is not restarted then. */
  readonly validate?: (name: string) => Promise<void>;
  /** Times in milliseconds; tests shorten them. */
  readonly pace?: Partial<Pace>;
}

interface Pace {
  /** Between two looks at all containers. */
  readonly look: number;
  /** Between two measurements of memory and processor. */
  readonly measure: number;
  /** A container that a deployment replaces is away for less. */
  readonly absentAfter: number;
  /** What was seen last is believed for so long when the engine does not answer. */
  readonly unknownAfter: number;
}

export type ContainerRuntime = Runtime & {
  /** Looks for the first time and goes on looking; never throws. */
  readonly begin: () => Promise<void>;
  readonly close: () => Promise<void>;
};

const usualPace: Pace = {
  look: 5_000,
  measure: 30_000,
  absentAfter: 120_000,
  unknownAfter: 15_000,
};
const ANSWER_WITHIN_MS = 5_000;
const LOGS_WITHIN_MS = 10_000;
/** What is sick will hardly finish anything; for an operator the gateway may drain (its calls end it sooner). */
const stopSeconds = { supervisor: 15, operator: 150 } as const;
/** A restart that did not help must not keep the next one waiting for long. */
const healthyWithinMs = { supervisor: 60_000, operator: 120_000 } as const;
const HEALTHY_POLL_MS = 500;
/** The gate to the engine itself: it may not be looked into through itself. */
const GATE = "socket-proxy";

/** Sees and restarts the containers that the deployment made on this host. It starts nothing, makes nothing, removes nothing. */
export function createContainerRuntime(
  options: ContainerRuntimeOptions,
): ContainerRuntime {
  const { engine, history, prefix } = options;
  const pathOf = (service: string) =>
    `/containers/${encodeURIComponent(containerName(service, prefix))}`;
  const pace = { ...usualPace, ...options.pace };
  const begun = Date.now();
  const known = createKnownContainers({
    history,
    onChange: options.onChange,
    absentAfter: pace.absentAfter,
  });
  const stopped = new AbortController();
  let trouble: { readonly since: number; readonly text: string } | undefined;
  let measuredAt = 0;
  let working: Promise<void> = Promise.resolve();

  /** One container as it is now; undefined when there is none of ours. */
  async function lookAt(name: string): Promise<ServiceView | undefined> {
    const answer = await engine.ask(
      "GET",
      `${pathOf(name)}/json`,
      ANSWER_WITHIN_MS,
    );
    // The gate refuses what is not ours by name.
    if (answer.status === 404 || answer.status === 403) {
      return undefined;
    }
    return readContainer(textIn(answer), begun, prefix);
  }

  async function lookAtAll(): Promise<void> {
    const filters = encodeURIComponent(JSON.stringify({ label: [OUR_LABEL] }));
    const answer = await engine.ask(
      "GET",
      `/containers/json?all=1&filters=${filters}`,
      ANSWER_WITHIN_MS,
    );
    const names = readNames(textIn(answer), prefix).filter(
      (name) => name !== GATE,
    );
    const views = await Promise.all(names.map(lookAt));
    const seen = new Map(
      views
        .filter((view) => view !== undefined)
        .map((view) => [view.name, view]),
    );
    for (const view of seen.values()) {
      known.note(view);
    }
    for (const name of known.names()) {
      if (!seen.has(name)) {
        known.miss(name);
      }
    }
  }

  async function measure(): Promise<void> {
    for (const name of known.names()) {
      if (known.get(name)?.pid === null) {
        continue;
      }
      const answer = await engine.ask(
        "GET",
        `${pathOf(name)}/stats?stream=false&one-shot=true`,
        ANSWER_WITHIN_MS,
      );
      if (answer.status === 200) {
        known.measured(name, readStats(textIn(answer)));
      }
    }
  }

  async function lookOnce(): Promise<void> {
    try {
      await lookAtAll();
      trouble = undefined;
      if (isWithin(measuredAt, pace.measure, Date.now())) {
        return;
      }
      measuredAt = Date.now();
      await measure();
    } catch (error) {
      const text = textOf(error);
      if (trouble?.text !== text) {
        options.onTrouble(text);
      }
      trouble = { since: trouble?.since ?? Date.now(), text };
    }
  }

  async function lookOn(): Promise<void> {
    while (!stopped.signal.aborted) {
      await wait(pace.look, undefined, { signal: stopped.signal }).catch(
        () => {},
      );
      if (!stopped.signal.aborted) {
        await lookOnce();
      }
    }
  }

  /** What was seen last, unless that is too long ago to be believed. */
  function shown(view: ServiceView): ServiceView {
    const silent = silence();
    return silent === undefined
      ? view
      : { ...view, state: "unknown", ...silent };
  }

  function silence(): { since: number; reason: string } | undefined {
    return trouble === undefined ||
      isWithin(trouble.since, pace.unknownAfter, Date.now())
      ? undefined
      : { since: trouble.since, reason: trouble.text };
  }

  async function look(name: string): Promise<ServiceView | undefined> {
    const view = await lookAt(name);
    if (view !== undefined) {
      known.note(view);
    } else {
      known.miss(name);
    }
    return view ?? known.get(name);
  }

  async function untilRunning(name: string, withinMs: number): Promise<void> {
    const deadline = performance.now() + withinMs;
    let view: ServiceView | undefined;
    do {
      view = await look(name);
      if (view?.state === "running" && view.container?.health !== "unhealthy") {
        return;
      }
      await wait(HEALTHY_POLL_MS);
    } while (performance.now() < deadline && view?.state !== "absent");
    throw new Failure(
      `${name} was restarted and is not well after ${inWords(withinMs)}${view?.reason == null ? "" : ` (${view.reason})`}: \`hearth logs ${name}\` shows more.`,
    );
  }

  return {
    list: () => {
      const silent = silence();
      const views = known.names().flatMap((name) => known.get(name) ?? []);
      return views.length === 0 && silent !== undefined
        ? [unseen(silent)]
        : views.map(shown);
    },
    inspect: (name) => {
      const view = known.get(name);
      return view === undefined ? undefined : shown(view);
    },
    look,
    stats: known.stats,
    logs: async (name, lines) => {
      const answer = await engine.ask(
        "GET",
        `${pathOf(name)}/logs?stdout=1&stderr=1&tail=${lines}`,
        LOGS_WITHIN_MS,
      );
      if (answer.status !== 200) {
        throw refused(name, answer);
      }
      const text = readLogFrames(answer.body).split("\n");
      if (text.at(-1) === "") {
        text.pop();
      }
      return text.slice(-lines);
    },
    restart: async (name, reason, by) => {
      if (known.get(name) === undefined) {
        throw new Failure(
          `no container is called "${name}": there are ${known.names().join(", ")}.`,
        );
      }
      await options.validate?.(name);
      if (by === "operator") {
        history.act(name, "restart-asked", reason);
      }
      const seconds = stopSeconds[by];
      known.order(name, true);
      try {
        const answer = await engine.ask(
          "POST",
          `${pathOf(name)}/restart?t=${seconds}`,
          seconds * 1000 + healthyWithinMs[by],
        );
        if (answer.status !== 204) {
          throw refused(name, answer);
        }
        await untilRunning(name, healthyWithinMs[by]);
      } finally {
        known.order(name, false);
      }
    },
    begin: async () => {
      await lookOnce();
      working = lookOn();
    },
    close: async () => {
      stopped.abort();
      engine.close();
      await working;
    },
  };
}

/** Nothing was ever seen, and the engine is silent: that must not look like a host without containers. */
function unseen(silent: { since: number; reason: string }): ServiceView {
  return {
    name: "docker",
    state: "unknown",
    pid: null,
    address: "",
    port: 0,
    adopted: false,
    tookMs: null,
    restarts: 0,
    ...silent,
  };
}

function refused(name: string, { status, body }: EngineAnswer): Failure {
  if (status === 404) {
    return new Failure(
      `${name} has no container: \`npm run deploy -- up --refresh\` makes it again.`,
    );
  }
  if (status === 403) {
    return new Failure(
      `${name} is no service of Hearth's on this host: \`hearth status\` lists them.`,
    );
  }
  return new Failure(
    `Docker answered ${status} for ${name}${wordsIn(body)}; \`docker ps -a\` on this host shows how it is.`,
  );
}

function textIn({ status, body }: EngineAnswer): string {
  if (status !== 200) {
    throw new Failure(
      `Docker answered ${status}${wordsIn(body)}; \`docker info\` on this host says how it is.`,
    );
  }
  return body.toString("utf8");
}

function wordsIn(body: Buffer): string {
  const words = body.toString("utf8").trim().slice(0, 300);
  return words === "" ? "" : `: ${words}`;
}
