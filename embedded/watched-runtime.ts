import { readVariable, type Environment } from "../core/environment.ts";
import type { Check } from "../supervisor/checks/config.ts";
import type { History } from "../supervisor/history/history.ts";
import { withContainerChecks } from "../supervisor/runtimes/docker/container-checks.ts";
import { ContainerRuntime } from "../supervisor/runtimes/docker/container-runtime.ts";
import { containerName } from "../supervisor/runtimes/docker/container-view.ts";
import { openEngine } from "../supervisor/runtimes/docker/engine.ts";
import { checkGatewayConfig } from "../supervisor/runtimes/docker/gateway-config.ts";
import { openKubeApi } from "../supervisor/runtimes/kubernetes/kube-api.ts";
import { withPodCheck } from "../supervisor/runtimes/kubernetes/pod-check.ts";
import {
  PodRuntime,
  releaseOf,
} from "../supervisor/runtimes/kubernetes/pod-runtime.ts";
import type {
  Runtime,
  ServiceState,
  ServiceView,
} from "../supervisor/runtimes/runtime.ts";

/** What runs the services of a supervisor that starts none itself; none: unknown, it only checks them. */
export type WatchedKind = "docker" | "kubernetes" | "none";

/** A runtime of services that others start. */
export interface WatchedRuntime extends Runtime {
  /** Never throws. */
  readonly start: () => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface WatchedRuntimePlan {
  /** The checks with those of the runtime's services. */
  readonly withChecks: (checks: readonly Check[]) => Check[];
  readonly create: (history: History, events: WatchedEvents) => WatchedRuntime;
}

export interface WatchedEvents {
  readonly onService: (view: ServiceView, before: ServiceState) => void;
  readonly onNotice: (sentence: string) => void;
}

/**
 * Reads the runtime's settings; undefined without a runtime. Throws a Failure if one is invalid. `serviceAccount` is the
 * directory of the service account's files, if it is not where Kubernetes mounts them.
 */
export function planWatchedRuntime(
  kind: WatchedKind,
  env: Environment,
  serviceAccount?: string,
): WatchedRuntimePlan | undefined {
  switch (kind) {
    case "docker":
      return planContainers(env);
    case "kubernetes":
      return planPods(env, serviceAccount);
    case "none":
      return undefined;
  }
}

function planContainers(env: Environment): WatchedRuntimePlan {
  const prefix = readVariable("HEARTH_CONTAINER_PREFIX", env) ?? "hearth";
  const engine = openEngine(
    readVariable("DOCKER_HOST", env) ?? "unix:///var/run/docker.sock",
    containerName("socket-proxy", prefix),
  );
  const services = (readVariable("HEARTH_CONTAINERS", env) ?? "")
    .split(" ")
    .filter((name) => name !== "");
  return {
    withChecks: (checks) => withContainerChecks(checks, services),
    create: (history, { onService, onNotice }) =>
      new ContainerRuntime({
        engine,
        prefix,
        history,
        onChange: onService,
        onTrouble: onNotice,
        validate: async (name) => {
          if (name === "gateway") {
            await checkGatewayConfig(env);
          }
        },
      }),
  };
}

function planPods(
  env: Environment,
  serviceAccount: string | undefined,
): WatchedRuntimePlan {
  const api = openKubeApi(env, serviceAccount);
  const release = releaseOf(env);
  return {
    withChecks: withPodCheck,
    create: (history, { onService, onNotice }) =>
      new PodRuntime({
        api,
        release,
        history,
        onChange: onService,
        onTrouble: onNotice,
      }),
  };
}
