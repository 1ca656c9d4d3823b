import { expect, test } from "vitest";
import {
  crashLooping,
  notReady,
  podList,
  sampleContainer,
  sampleEnd,
  samplePod,
  unschedulable,
  withoutImage,
  type Json,
} from "../../../test/supervisor/pod-samples.ts";
import { probeCheck } from "../../../test/supervisor/probe-check.ts";
import { readPods } from "../../runtimes/kubernetes/pod-view.ts";
import { unknownEngine } from "../../runtimes/regular-probe.ts";
import type { Runtime, ServiceView } from "../../runtimes/runtime.ts";

/** Five minutes after the last end of the samples. */
const NOW = Date.parse("2026-11-24T10:25:00Z");

function probeViews(views: readonly ServiceView[], now = NOW) {
  const runtime: Runtime = {
    list: () => views,
    inspect: () => undefined,
    probe: async () => undefined,
    logs: () => [],
    stats: () => undefined,
    restart: async () => {},
  };
  return probeCheck({ kind: "pods" }, { runtime, now });
}

function probe(pods: readonly Json[], now = NOW) {
  return probeViews(readPods(podList(pods), 0), now);
}

const ready = samplePod("hearth-gateway-1");

test("ready pods are up", async () => {
  expect(await probe([ready, samplePod("hearth-gateway-2")])).toMatchObject({
    ok: true,
    text: "2 of 2 pods are ready",
    measures: { pods: 2, pods_ready: 2, restarts: 0 },
  });
});

test("a service without a ready pod is down, one with another ready pod needs attention", async () => {
  const text =
    "hearth-gateway-0: killed: out of memory; the kubelet is restarting it";
  const failed = crashLooping("hearth-gateway-0", sampleEnd("OOMKilled", 137));
  expect(await probe([failed])).toMatchObject({
    ok: false,
    level: "down",
    text: `${text}; 0 of 1 pod is ready`,
  });
  expect(await probe([failed, ready])).toMatchObject({
    ok: false,
    level: "warning",
    text: `${text}; 1 of 2 pods are ready`,
  });
  const notes = samplePod("notes", {
    metadata: { labels: { "app.kubernetes.io/component": "notes" } },
  });
  expect(await probe([failed, notes])).toMatchObject({ level: "down" });
});

test("of many pods in trouble, three are named", async () => {
  const all = ["a", "b", "c", "d", "e"].map((name) => crashLooping(name));
  expect((await probe(all)).text).toMatch(
    /^a: .*; c: [^;]*; [^;]*; 2 more; 0 of 5 pods are ready$/,
  );
});

test("an image that cannot be pulled is down at once, a pending pod only after some time", async () => {
  const created = Date.parse("2026-11-24T10:00:00Z");
  expect(
    await probe([withoutImage("hearth-gateway-0")], created + 1000),
  ).toMatchObject({
    ok: false,
    text: expect.stringMatching(
      /^hearth-gateway-0: image .*:1\.2\.9 cannot be pulled/,
    ),
  });
  const pending = [unschedulable("hearth-gateway-0"), ready];
  expect((await probe(pending, created + 299_000)).ok).toBe(true);
  expect(await probe(pending, created + 301_000)).toMatchObject({
    ok: false,
    level: "warning",
    text: expect.stringMatching(
      /^hearth-gateway-0: not ready for 5 min 1 s \(not scheduled: 0\/2 nodes are available/,
    ),
  });
});

test("a pod that fails its readiness probe for long is reported", async () => {
  const failing = samplePod("hearth-gateway-0", {
    status: {
      conditions: notReady("2026-11-24T10:15:00Z"),
      containerStatuses: [sampleContainer("gateway", { ready: false })],
    },
  });
  expect(await probe([failing, ready])).toMatchObject({
    level: "warning",
    text: "hearth-gateway-0: not ready for 10 min (not ready: its readiness probe fails); 1 of 2 pods are ready",
  });
});

/** A ready pod that was restarted. */
function restarted(times: number, reason: string, exitCode: number): Json {
  return samplePod("hearth-gateway-0", {
    status: {
      containerStatuses: [
        sampleContainer("gateway", {
          restartCount: times,
          lastState: sampleEnd(reason, exitCode),
        }),
      ],
    },
  });
}

test("lack of memory and repeated restarts need attention for ten minutes, a single restart does not", async () => {
  const killed = [restarted(1, "OOMKilled", 137)];
  expect(await probe(killed)).toMatchObject({
    ok: false,
    level: "warning",
    text: "hearth-gateway-0: ran out of memory and was restarted; 1 of 1 pod is ready",
  });
  expect((await probe(killed, NOW + 301_000)).ok).toBe(true);
  expect((await probe([restarted(1, "Error", 1)])).ok).toBe(true);
  expect(await probe([restarted(3, "Error", 1)])).toMatchObject({
    level: "warning",
    text: expect.stringMatching(
      /restarted 3 times; ended with exit code 1; 1 of 1/,
    ),
  });
});

test("a pod that is being deleted is not missed", async () => {
  const leaving = samplePod("hearth-gateway-0", {
    metadata: { deletionTimestamp: "2026-11-24T10:10:00Z" },
    status: { conditions: notReady("2026-11-24T10:10:00Z") },
  });
  expect(await probe([leaving, ready])).toMatchObject({
    ok: true,
    text: "1 of 2 pods are ready",
  });
});

test("an API that does not answer is a warning, as is another runtime", async () => {
  const reason = "the Kubernetes API does not answer";
  expect(
    await probeViews([unknownEngine("kubernetes", { since: 0, reason })]),
  ).toMatchObject({ ok: false, level: "warning", text: reason });
  expect(await probeCheck({ kind: "pods" })).toMatchObject({
    level: "warning",
    text: expect.stringContaining("HEARTH_RUNTIME=kubernetes"),
  });
});
