import { connect } from "node:net";
import { expect } from "vitest";
import { SUPERVISOR_POD } from "../../infra/kubernetes/release-name.ts";
import {
  isUndrained,
  type GatewayInstance,
} from "../../supervisor/gateway/instances.ts";
import { kubectl } from "./cluster.ts";
import { askGateway, isReady, podsOf, type Release } from "./release.ts";

// Waits for states of a release and its cluster.

/** Changes the number of gateways; returns when all are ready and those removed have stopped. */
export async function scale(release: Release, replicas: number): Promise<void> {
  await kubectl([
    "scale",
    "statefulset/hearth-gateway",
    `--namespace=${release.namespace}`,
    `--replicas=${replicas}`,
  ]);
  await expect
    .poll(async () => (await podsOf(release, "gateway")).map(isReady), {
      timeout: 90_000,
      interval: 500,
    })
    .toEqual(Array.from({ length: replicas }, () => true));
}

/** Waits until the release has this number of pods, all ready. */
export async function untilReady(
  release: Release,
  pods: number,
): Promise<void> {
  await expect
    .poll(async () => (await podsOf(release)).map(isReady), {
      timeout: 120_000,
      interval: 1_000,
    })
    .toEqual(Array.from({ length: pods }, () => true));
}

/** Waits until no new connection to a Service leads to a pod that does not respond. */
export async function untilConnected(url: string): Promise<void> {
  const { hostname, port } = new URL(url);
  const connects = () =>
    new Promise<boolean>((resolve) => {
      const socket = connect(Number(port), hostname);
      const end = (connected: boolean) => {
        socket.destroy();
        resolve(connected);
      };
      socket.setTimeout(1_000, () => end(false));
      socket.once("connect", () => end(true));
      socket.once("error", () => end(false));
    });
  await expect
    .poll(() => Promise.all(Array.from({ length: 30 }, connects)), {
      timeout: 60_000,
      interval: 500,
    })
    .not.toContain(false);
}

/** Waits until the second node has this status of the condition Ready. */
export async function untilNode2(status: string): Promise<void> {
  await expect
    .poll(
      () =>
        kubectl([
          "get",
          "node/node2",
          '--output=jsonpath={.status.conditions[?(@.type=="Ready")].status}',
        ]),
      { timeout: 60_000, interval: 500 },
    )
    .toBe(status);
}

/** Asserts that no gateway has stopped with calls in its journal, also with `hearth doctor`. */
export async function nothingUndrained(release: Release): Promise<void> {
  const { instances } = (await askGateway(release, "/instances")) as {
    readonly instances: readonly GatewayInstance[];
  };
  expect(instances.filter(isUndrained)).toEqual([]);
  const report = await kubectl([
    "exec",
    SUPERVISOR_POD,
    `--namespace=${release.namespace}`,
    "--",
    "sh",
    "-c",
    // It ends with 1 if it finds anything else.
    "hearth doctor || true",
  ]);
  expect(report).not.toContain("only in its journal");
}
