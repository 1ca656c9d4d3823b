import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  expect,
  test,
} from "vitest";
import { buildSocketProxyConfig } from "../../infra/components/socket-proxy.ts";
import { ContainerRuntime } from "../../supervisor/runtimes/docker/container-runtime.ts";
import { openEngine } from "../../supervisor/runtimes/docker/engine.ts";
import { openHistory, type History } from "../../supervisor/history/history.ts";
import { testRuntimeContract } from "../supervisor/runtime-contract.ts";
import { waitFor } from "../wait-for.ts";
import { addresses, startTwoEngines, type TwoEngines } from "./two-engines.ts";

const GATE_PORT = 12_375;
const LABEL = "hearth.config=0123456789abcdef";
let engines: TwoEngines;
let directory: string;

beforeAll(async () => {
  engines = await startTwoEngines();
  directory = mkdtempSync(join(tmpdir(), "hearth-containers-"));
  const config = join(directory, "haproxy.cfg");
  writeFileSync(config, buildSocketProxyConfig({ prefix: "hearth" }));
  // As the deployment places it, but reached from here.
  await engines.docker(
    ...(["a", "run", "--detach", "--name", "hearth-socket-proxy"] as const),
    "--label",
    LABEL,
    "--user",
    "0:0",
    "--publish",
    `${addresses.a}:${GATE_PORT}:2375`,
    "--volume",
    `${engines.sockets.a}:/var/run/docker.sock`,
    "--volume",
    `${config}:/usr/local/etc/haproxy/haproxy.cfg:ro`,
    "hearth-test/haproxy",
    "haproxy",
    "-W",
    "-db",
    "-f",
    "/usr/local/etc/haproxy/haproxy.cfg",
  );
});
afterAll(async () => {
  if (directory !== undefined) {
    rmSync(directory, { recursive: true });
  }
});

/** A container with Hearth's label that runs one line of JavaScript. */
async function runOurs(
  service: string,
  script: string,
  ...options: readonly string[]
): Promise<void> {
  await engines.docker(
    ...(["a", "run", "--detach", "--init", "--label", LABEL] as const),
    "--name",
    `hearth-${service}`,
    "--restart",
    "unless-stopped",
    ...options,
    "hearth-test/node",
    "node",
    "-e",
    script,
  );
}

async function removeOurs(...services: readonly string[]): Promise<void> {
  await engines.docker(
    ...(["a", "rm", "--force"] as const),
    ...services.map((service) => `hearth-${service}`),
  );
}

const greet = (service: string) =>
  `console.log("${service} says hello"); setInterval(() => {}, 1e6)`;

function openRuntime(history: History): ContainerRuntime {
  return new ContainerRuntime({
    prefix: "hearth",
    engine: openEngine(
      `tcp://${addresses.a}:${GATE_PORT}`,
      "hearth-socket-proxy",
    ),
    history,
    onChange: () => {},
    onTrouble: () => {},
    pace: { probe: 200, measure: 500, absentAfter: 1_000, unknownAfter: 1_000 },
  });
}

testRuntimeContract("containers", async () => {
  for (const name of ["gateway", "edge"]) {
    await runOurs(name, greet(name));
  }
  const history = openHistory(":memory:");
  const runtime = openRuntime(history);
  await runtime.start();
  return {
    runtime,
    one: "gateway",
    two: "edge",
    crash: async (name) => {
      // Both engines' processes are this machine's.
      process.kill(runtime.inspect(name)?.pid ?? 0, "SIGKILL");
    },
    close: async () => {
      await runtime.close();
      history.close();
      await removeOurs("gateway", "edge");
    },
  };
});

let history: History;
let runtime: ContainerRuntime;
beforeEach(() => {
  history = openHistory(":memory:");
  runtime = openRuntime(history);
});
afterEach(async () => {
  await runtime.close();
  history.close();
});

const acts = () =>
  history
    .latest(50)
    .filter(({ kind }) => kind === "act")
    .map(({ name, to, reason }) => `${name} ${to}: ${reason}`);
const stateOf = (name: string) => runtime.inspect(name)?.state;

test("a container killed from outside has ended, and restart starts it again", async () => {
  await runOurs("gateway", greet("gateway"));
  await runtime.start();
  // Docker treats its own kill as intended: the restart policy does not apply.
  await engines.docker("a", "kill", "hearth-gateway");
  await waitFor("the end", () => stateOf("gateway") === "ended");
  expect(runtime.inspect("gateway")?.reason).toBe("ended with exit code 137");
  await runtime.restart("gateway", "it ended", "supervisor");
  expect(stateOf("gateway")).toBe("running");
  await removeOurs("gateway");
  await waitFor("absence", () => stateOf("gateway") === "absent");
  await runOurs("gateway", greet("gateway"));
  await waitFor("its successor", () => stateOf("gateway") === "running");
  expect(acts()).toEqual(["gateway start: replaced by a new container"]);
  await removeOurs("gateway");
});

test("a container that exceeds its memory is reported as such", async () => {
  await runOurs(
    "redis",
    "const all = []; setTimeout(() => { for (;;) all.push(Buffer.alloc(1e6, 1)) }, 1500)",
    "--memory",
    "64m",
    "--memory-swap",
    "64m",
  );
  await runtime.start();
  await waitFor("the kernel to end it", () =>
    acts().includes("redis restart: out of memory; restarted by Docker"),
  );
  await waitFor(
    "its memory to be measured",
    () => runtime.stats("redis")?.memoryLimitBytes === 64 * 1024 * 1024,
  );
  await removeOurs("redis");
});

test("an unhealthy container is running, with the output of its health check", async () => {
  await runOurs(
    "edge",
    greet("edge"),
    "--health-cmd",
    "echo no answer; exit 1",
    "--health-interval",
    "1s",
    "--health-retries",
    "1",
  );
  await runtime.start();
  await waitFor(
    "bad health",
    () => runtime.inspect("edge")?.container?.health === "unhealthy",
  );
  expect(runtime.inspect("edge")).toMatchObject({
    state: "running",
    reason: "unhealthy: no answer",
  });
  await removeOurs("edge");
});

test("other containers are neither shown nor restarted, and without the proxy every status is unknown", async () => {
  await runOurs("gateway", greet("gateway"));
  await engines.docker(
    "a",
    "create",
    "--name",
    "hearth-edge",
    "hearth-test/node",
  );
  await runtime.start();
  expect(runtime.list().map(({ name }) => name)).toEqual(["gateway"]);
  expect(await runtime.probe("edge")).toBeUndefined();
  expect(await runtime.probe("stranger")).toBeUndefined();
  await engines.docker("a", "pause", "hearth-socket-proxy");
  await waitFor("not knowing", () => stateOf("gateway") === "unknown");
  await engines.docker("a", "unpause", "hearth-socket-proxy");
  await waitFor("knowing", () => stateOf("gateway") === "running");
  await removeOurs("gateway", "edge");
});
