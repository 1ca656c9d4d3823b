import { readVariable, type Environment } from "../../../core/environment.ts";
import { Failure } from "../../../core/failure.ts";
import { RegularProbe, unknownEngine, type Silence } from "../regular-probe.ts";
import type { Runtime, ServiceState, ServiceView } from "../runtime.ts";
import type { KubeApi } from "./kube-api.ts";
import { recordPodChanges, type PodEvents } from "./pod-changes.ts";
import { CLUSTER } from "./pod-check.ts";
import { readPodLogs } from "./pod-logs.ts";
import { readPods } from "./pod-view.ts";

interface PodRuntimeOptions extends PodEvents {
  readonly api: KubeApi;
  /** Pods of this Helm release are shown: those with the label app.kubernetes.io/instance. */
  readonly release: string;
  readonly onTrouble: (sentence: string) => void;
  /** Times in milliseconds; tests shorten them. */
  readonly pace?: Partial<Pace>;
}

interface Pace {
  /** Between two lists of pods. */
  readonly probe: number;
  /** The latest state counts for this long while the API does not answer. */
  readonly unknownAfter: number;
}

const DEFAULT_PACE: Pace = { probe: 10_000, unknownAfter: 30_000 };
const ANSWER_TIMEOUT_MS = 5_000;

/** The service that answers for a component with several pods is the healthiest one, by the order of these states. */
const HEALTHIEST: readonly ServiceState[] = [
  "running",
  "starting",
  "waiting",
  "backing-off",
];

/** The release whose pods are shown. Throws a Failure if HEARTH_RELEASE is not set. */
export function releaseOf(env: Environment): string {
  const release = readVariable("HEARTH_RELEASE", env);
  if (release === undefined) {
    throw new Failure(
      'HEARTH_RUNTIME is "kubernetes", but HEARTH_RELEASE is not set: set it to the name of the Helm release (label app.kubernetes.io/instance of its pods).',
    );
  }
  return release;
}

/**
 * Shows the pods of a release. It changes nothing: Kubernetes restarts and replaces pods itself, and a service account that can
 * only read is enough. A pod is found by its name, or the healthiest of several by their component, such as gateway.
 */
export class PodRuntime implements Runtime {
  readonly #options: PodRuntimeOptions;
  readonly #regular: RegularProbe;
  readonly #supervisedSince = Date.now();
  #pods: readonly ServiceView[] | undefined;
  /** One at a time: a slow answer must not replace a newer one. */
  #updating: Promise<void> | undefined;

  constructor(options: PodRuntimeOptions) {
    const { probe, unknownAfter } = { ...DEFAULT_PACE, ...options.pace };
    this.#options = options;
    this.#regular = new RegularProbe({
      probe: () => this.#update(),
      every: probe,
      unknownAfter,
      onTrouble: options.onTrouble,
    });
  }

  /** Lists the pods once, then regularly; never throws. */
  start(): Promise<void> {
    return this.#regular.start();
  }

  close(): Promise<void> {
    return this.#regular.close();
  }

  /** While the API does not answer, a single entry that says so. */
  list(): readonly ServiceView[] {
    const silence = this.#silence();
    return silence === undefined
      ? (this.#pods ?? [])
      : [
          {
            ...unknownEngine(CLUSTER, silence),
            command: `kubectl get pods --namespace ${this.#options.api.namespace} --selector ${this.#selector()}`,
          },
        ];
  }

  inspect(name: string): ServiceView | undefined {
    const silence = this.#silence();
    const view = this.#find(name);
    if (silence === undefined) {
      return view;
    }
    return view === undefined
      ? this.list().find((each) => each.name === name)
      : { ...view, state: "unknown", ...silence };
  }

  async probe(name: string): Promise<ServiceView | undefined> {
    await this.#update();
    return this.#find(name);
  }

  async restart(name: string): Promise<void> {
    const view = this.#named(name);
    const command = view.pod?.restartCommand ?? null;
    throw new Failure(
      command === null
        ? `${view.name} has no controller that would replace it, so Hearth cannot restart it: deploy it again.`
        : `${name} is restarted by Kubernetes, not by Hearth: run \`${command}\`.`,
    );
  }

  logs(name: string, lines: number): Promise<readonly string[]> {
    const view = this.#named(name);
    const containers = view.pod?.containers.map((each) => each.name) ?? [];
    return readPodLogs(this.#options.api, view.name, containers, lines);
  }

  stats(): undefined {
    return undefined;
  }

  /** Without a list of pods, an outage counts at once. */
  #silence(): Silence | undefined {
    return this.#pods === undefined
      ? this.#regular.outage()
      : this.#regular.silence();
  }

  #named(name: string): ServiceView {
    const view = this.#find(name);
    if (view === undefined) {
      const names = (this.#pods ?? []).map((each) => each.name).join(", ");
      throw new Failure(
        `pod "${name}" not found; there are ${names === "" ? "none" : names}.`,
      );
    }
    return view;
  }

  #find(name: string): ServiceView | undefined {
    const pods = this.#pods ?? [];
    const [healthiest] = pods
      .filter(({ pod }) => pod?.component === name)
      .toSorted((a, b) => rankOf(a) - rankOf(b));
    return pods.find((each) => each.name === name) ?? healthiest;
  }

  #update(): Promise<void> {
    this.#updating ??= this.#listPods().finally(() => {
      this.#updating = undefined;
    });
    return this.#updating;
  }

  async #listPods(): Promise<void> {
    const { api } = this.#options;
    const query = new URLSearchParams({
      labelSelector: this.#selector(),
      // Answered from the API server's memory, without a read of etcd.
      resourceVersion: "0",
    });
    const answer = await api.get(`pods?${query}`, ANSWER_TIMEOUT_MS);
    const pods = readPods(answer, this.#supervisedSince);
    // The supervisor itself is a pod of the release.
    if (pods.length === 0) {
      throw new Failure(
        `there are no pods with the label ${this.#selector()} in namespace ${api.namespace}: set HEARTH_RELEASE to the name of the Helm release.`,
      );
    }
    if (this.#pods !== undefined) {
      recordPodChanges(this.#pods, pods, this.#options);
    }
    this.#pods = pods;
  }

  #selector(): string {
    return `app.kubernetes.io/instance=${this.#options.release}`;
  }
}

function rankOf({ state }: ServiceView): number {
  const rank = HEALTHIEST.indexOf(state);
  return rank < 0 ? HEALTHIEST.length : rank;
}
