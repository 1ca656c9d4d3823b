import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { operatorHeaders } from "../supervisor/credentials.ts";
import type { Status } from "../supervisor/status.ts";
import { runHearth } from "../test/supervisor/hearth-command.ts";
import {
  crashLooping,
  sampleEnd,
  samplePod,
} from "../test/supervisor/pod-samples.ts";
import {
  startSmallKube,
  type SmallKube,
} from "../test/supervisor/small-kube.ts";
import { temporaryHome } from "../test/supervisor/temporary-home.ts";
import { waitFor } from "../test/wait-for.ts";
import { startWatcher, type Watcher } from "./watcher.ts";

const PASSWORD = "operator-password-of-the-test";

let place: ReturnType<typeof temporaryHome>;
let kube: SmallKube;
let watcher: Watcher | undefined;

beforeEach(async () => {
  place = temporaryHome();
  kube = await startSmallKube();
  kube.pods = [samplePod("hearth-gateway-0"), samplePod("hearth-gateway-1")];
});
afterEach(async () => {
  await watcher?.stop().catch(() => {});
  watcher = undefined;
  await kube.close();
  place.remove();
});

/** A supervisor in the cluster, with a gateway that does not answer and would be restarted elsewhere. */
async function watch(): Promise<Watcher> {
  const config = join(place.directory, "supervisor.yaml");
  writeFileSync(
    config,
    `checks:
  - { name: gateway, kind: http, url: "http://127.0.0.1:1", every: 500ms, fail_after: 1, heal: { restart: gateway, grace: 500ms } }
  - { name: kubernetes, kind: pods, every: 500ms, fail_after: 1 }
jobs: { time_zone: UTC }
`,
  );
  watcher = await startWatcher({
    home: place.home,
    env: {
      ...kube.env,
      HEARTH_RELEASE: "hearth",
      HEARTH_SUPERVISOR_CONFIG: config,
      HEARTH_SUPERVISOR_PORT: "0",
      HEARTH_OPERATOR_PASSWORD: PASSWORD,
    },
    runtime: "kubernetes",
    serviceAccount: kube.serviceAccount,
    onNotice: () => {},
    onService: () => {},
    onCheck: () => {},
  });
  return watcher;
}

async function get(path: string): Promise<string> {
  const answer = await fetch(`${watcher?.address}${path}`, {
    headers: operatorHeaders(PASSWORD),
  });
  return answer.text();
}

async function status(): Promise<Status> {
  return JSON.parse(await get("/api/status")) as Status;
}

function hearth(...words: readonly string[]) {
  return runHearth(words, {
    HEARTH_URL: watcher?.address ?? "",
    HEARTH_OPERATOR_PASSWORD: PASSWORD,
  });
}

test("the console and the command show pods; a restart names Kubernetes' command", async () => {
  kube.pods = [
    crashLooping("hearth-gateway-0", sampleEnd("OOMKilled", 137)),
    samplePod("hearth-gateway-1"),
  ];
  kube.logs.set(
    "hearth-gateway-1/gateway",
    "2026-11-24T10:00:01.000000000Z listening\n",
  );
  await watch();
  const page = await get("/");
  expect(page).toContain("<code>gateway:1.2.0</code>");
  expect(page).toContain("killed: out of memory; the kubelet is restarting it");
  const pod = await get("/services/hearth-gateway-1");
  expect(pod).toContain("listening");
  expect(pod).toContain(
    "kubectl rollout restart statefulset/hearth-gateway --namespace hearth",
  );
  expect(pod).not.toContain("/services/hearth-gateway-1/restart");
  const service = await get("/services/gateway");
  expect(service).toContain("/services/hearth-gateway-0");
  expect(service).toContain("Logs are on the pages of its pods.");

  const [shown, restarted, logs, all] = await Promise.all([
    hearth("status"),
    hearth("restart", "gateway"),
    hearth("logs", "gateway"),
    hearth("logs"),
  ]);
  expect(shown.out).toMatch(
    /hearth-gateway-0 +✕ restarting +\S.* 0\/1 +4 +node-1 +killed: out of memory/,
  );
  expect(restarted).toMatchObject({
    code: 1,
    error:
      "hearth: gateway is restarted by Kubernetes, not by Hearth: run `kubectl rollout restart statefulset/hearth-gateway --namespace hearth`.\n",
  });
  expect(logs.out).toBe("listening\n");
  expect(all).toMatchObject({
    code: 0,
    out: '── hearth-gateway-0 ──\nthe Kubernetes API answered 400: container "gateway" in pod "hearth-gateway-0" is waiting to start: ContainerCreating.\n── hearth-gateway-1 ──\nlistening\n',
  });
});

test("a pod in trouble and an API that does not answer are one alarm each; nothing is restarted", async () => {
  await watch();
  const attention = async () =>
    (await status()).attention.map(({ name, level }) => `${name} ${level}`);
  await waitFor("the gateway to be down", async () =>
    (await attention()).includes("gateway down"),
  );
  kube.pods = [crashLooping("hearth-gateway-0"), samplePod("hearth-gateway-1")];
  await watcher?.stop();
  await watch();
  await waitFor("the alarm", async () =>
    (await attention()).includes("kubernetes warning"),
  );
  expect((await attention()).toSorted()).toEqual([
    "gateway down",
    "hearth-gateway-0 down",
    "kubernetes warning",
  ]);
  kube.mode = "forbid";
  await watcher?.stop();
  await watch();
  await waitFor("the outage", async () =>
    (await status()).checks.some(
      ({ name, latest }) =>
        name === "kubernetes" && latest?.text.includes("denied") === true,
    ),
  );
  expect((await attention()).toSorted()).toEqual([
    "gateway down",
    "kubernetes warning",
  ]);
  const { entries } = JSON.parse(await get("/api/history?name=gateway")) as {
    readonly entries: readonly { readonly to: string }[];
  };
  expect(entries.map(({ to }) => to)).not.toContain("heal");
});
