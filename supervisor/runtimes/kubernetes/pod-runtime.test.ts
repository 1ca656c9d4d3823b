import { afterEach, beforeEach, expect, test } from "vitest";
import type { History } from "../../history/history.ts";
import {
  crashLooping,
  notReady,
  sampleContainer,
  sampleEnd,
  samplePod,
  unschedulable,
} from "../../../test/supervisor/pod-samples.ts";
import {
  startSmallKube,
  type SmallKube,
} from "../../../test/supervisor/small-kube.ts";
import { temporaryHistory } from "../../../test/supervisor/temporary-history.ts";
import { waitFor } from "../../../test/wait-for.ts";
import { openKubeApi } from "./kube-api.ts";
import { PodRuntime } from "./pod-runtime.ts";

let history: History;
let kube: SmallKube;
let runtime: PodRuntime;
let changes: string[];
let troubles: string[];

beforeEach(async () => {
  history = temporaryHistory();
  kube = await startSmallKube();
  kube.pods = [samplePod("hearth-gateway-0"), samplePod("hearth-gateway-1")];
  changes = [];
  troubles = [];
  runtime = open(kube.env);
});
afterEach(async () => {
  await runtime.close();
  await kube.close();
});

function open(env: SmallKube["env"]): PodRuntime {
  return new PodRuntime({
    api: openKubeApi(env, kube.serviceAccount),
    release: "hearth",
    history,
    onChange: (view, before) =>
      changes.push(`${view.name}: ${before}, ${view.state}`),
    onTrouble: (sentence) => troubles.push(sentence),
    pace: { probe: 20, unknownAfter: 0 },
  });
}

function acts(): readonly string[] {
  return history
    .latest(50)
    .filter(({ kind }) => kind === "act")
    .map(({ name, to, reason }) => `${name} ${to}: ${reason}`)
    .toReversed();
}

function states(): readonly string[] {
  return runtime.list().map(({ name, state }) => `${name} ${state}`);
}

test("the pods of the release are listed, selected by its label", async () => {
  await runtime.start();
  expect(states()).toEqual([
    "hearth-gateway-0 running",
    "hearth-gateway-1 running",
  ]);
  expect(runtime.inspect("hearth-gateway-1")).toEqual(runtime.list()[1]);
  expect(runtime.inspect("notes")).toBeUndefined();
  expect(runtime.stats()).toBeUndefined();
  expect(kube.requests[0]).toBe(
    "/api/v1/namespaces/hearth/pods?labelSelector=app.kubernetes.io%2Finstance%3Dhearth&resourceVersion=0",
  );
  expect(acts()).toEqual([]);
});

test("a component is answered for by its healthiest pod", async () => {
  kube.pods = [crashLooping("a"), samplePod("b"), unschedulable("c")];
  await runtime.start();
  expect(runtime.inspect("gateway")?.name).toBe("b");
  kube.pods = [crashLooping("a"), unschedulable("c")];
  expect((await runtime.probe("gateway"))?.name).toBe("c");
});

test("restarts by the kubelet, new pods and deleted ones are recorded", async () => {
  await runtime.start();
  kube.pods = [
    samplePod("hearth-gateway-0", {
      status: {
        containerStatuses: [
          sampleContainer("gateway", {
            restartCount: 1,
            lastState: sampleEnd("OOMKilled", 137),
          }),
        ],
      },
    }),
    samplePod("hearth-gateway-1", { metadata: { uid: "another" } }),
    samplePod("hearth-gateway-2"),
  ];
  await waitFor("the changes", () => acts().length > 2);
  kube.pods = kube.pods.slice(0, 2);
  await waitFor("the deletion", () => changes.length > 1);
  expect(acts()).toEqual([
    "hearth-gateway-0 restart: killed: out of memory; restarted by the kubelet",
    "hearth-gateway-1 start: replaced by a new pod",
    "hearth-gateway-2 start: created by Kubernetes",
  ]);
  expect(changes).toEqual([
    "hearth-gateway-2: stopped, running",
    "hearth-gateway-2: running, stopped",
  ]);
});

test("changes of state are recorded with their reason", async () => {
  await runtime.start();
  kube.pods = [crashLooping("hearth-gateway-0"), samplePod("hearth-gateway-1")];
  await waitFor("the change", () => changes.length > 0);
  expect(changes).toEqual(["hearth-gateway-0: running, backing-off"]);
  expect(
    history.latest(1, "hearth-gateway-0").map(({ reason }) => reason),
  ).toEqual(["ended with exit code 1; the kubelet is restarting it"]);
});

test("a restart is answered with Kubernetes' own command", async () => {
  await runtime.start();
  const sentence =
    "run `kubectl rollout restart statefulset/hearth-gateway --namespace hearth`.";
  await expect(runtime.restart("hearth-gateway-0")).rejects.toThrow(
    `hearth-gateway-0 is restarted by Kubernetes, not by Hearth: ${sentence}`,
  );
  await expect(runtime.restart("gateway")).rejects.toThrow(
    `gateway is restarted by Kubernetes, not by Hearth: ${sentence}`,
  );
  await expect(runtime.restart("redis")).rejects.toThrow(
    'pod "redis" not found; there are hearth-gateway-0, hearth-gateway-1.',
  );
  kube.pods = [samplePod("a", { metadata: { ownerReferences: undefined } })];
  await runtime.probe("a");
  await expect(runtime.restart("a")).rejects.toThrow(
    "a has no controller that would replace it, so Hearth cannot restart it: deploy it again.",
  );
});

test("an API that does not answer is one entry, until it is back", async () => {
  await runtime.start();
  kube.mode = "forbid";
  await waitFor("silence", () => states().length === 1);
  expect(runtime.list()).toMatchObject([
    {
      name: "kubernetes",
      state: "unknown",
      reason: expect.stringContaining('cannot list resource "pods"') as string,
      command:
        "kubectl get pods --namespace hearth --selector app.kubernetes.io/instance=hearth",
    },
  ]);
  expect(runtime.inspect("kubernetes")?.state).toBe("unknown");
  expect(runtime.inspect("hearth-gateway-0")?.state).toBe("unknown");
  await expect(runtime.probe("hearth-gateway-0")).rejects.toThrow("denied");
  kube.mode = "answer";
  await waitFor("an answer", () => states().length === 2);
  expect(changes).toEqual([]);
  expect(troubles).toHaveLength(1);
});

test("a cluster that cannot be reached does not prevent the start", async () => {
  runtime = open({ ...kube.env, KUBERNETES_SERVICE_PORT: "1" });
  await runtime.start();
  expect(states()).toEqual(["kubernetes unknown"]);
  expect(troubles).toEqual([expect.stringContaining("ECONNREFUSED")]);
});

test("a release without pods is reported with the setting that names it", async () => {
  kube.pods = [];
  await runtime.start();
  expect(runtime.list()[0]?.reason).toBe(
    "there are no pods with the label app.kubernetes.io/instance=hearth in namespace hearth: set HEARTH_RELEASE to the name of the Helm release.",
  );
});

test("the last lines of a pod's log are read, decoded as a whole", async () => {
  kube.logs.set(
    "hearth-gateway-0/gateway",
    "2026-11-24T10:00:01.000000000Z one\n2026-11-24T10:00:02.000000000Z grüß\n",
  );
  await runtime.start();
  expect(await runtime.logs("hearth-gateway-0", 10)).toEqual(["one", "grüß"]);
  expect(await runtime.logs("gateway", 1)).toEqual(["grüß"]);
  expect(kube.requests.at(-1)).toBe(
    "/api/v1/namespaces/hearth/pods/hearth-gateway-0/log?container=gateway&tailLines=1",
  );
  kube.logs.set("hearth-gateway-1/gateway", "");
  expect(await runtime.logs("hearth-gateway-1", 10)).toEqual([]);
  kube.logs.clear();
  await expect(runtime.logs("hearth-gateway-1", 10)).rejects.toThrow(
    'the Kubernetes API answered 400: container "gateway" in pod "hearth-gateway-1" is waiting to start: ContainerCreating.',
  );
});

test("the lines of two containers are in the order of writing, each with its container", async () => {
  const containers = [
    { name: "gateway", image: "gateway:1" },
    { name: "proxy", image: "proxy:2" },
  ];
  kube.pods = [
    samplePod("a", {
      spec: { containers },
      status: { conditions: notReady("2026-11-24T10:00:00Z") },
    }),
  ];
  kube.logs.set(
    "a/gateway",
    "2026-11-24T10:00:01.000000000Z one\n2026-11-24T10:00:03.000000000Z three\n",
  );
  await runtime.start();
  expect(await runtime.logs("a", 10)).toEqual([
    "gateway: one",
    "gateway: three",
  ]);
  kube.logs.set("a/proxy", "2026-11-24T10:00:02.000000000Z two words\n");
  expect(await runtime.logs("a", 2)).toEqual([
    "proxy: two words",
    "gateway: three",
  ]);
  kube.logs.clear();
  await expect(runtime.logs("a", 2)).rejects.toThrow("is waiting to start");
});
