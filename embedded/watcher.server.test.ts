import { writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSmallDisk } from "../test/servers/small-disk.ts";
import { locateHome } from "../supervisor/home/home.ts";
import { readRunFile } from "../supervisor/runtimes/process/run-file.ts";
import {
  startSmallEngine,
  type SmallEngine,
} from "../test/supervisor/small-engine.ts";
import { temporaryHome } from "../test/supervisor/temporary-home.ts";
import { waitFor } from "../test/wait-for.ts";
import { startWatcher, type Watcher } from "./watcher.ts";
import { listen, portOf } from "../test/servers/ports.ts";

let place: ReturnType<typeof temporaryHome>;
let engine: SmallEngine;
let watcher: Watcher | undefined;
/** A notes store that accepts connections but never answers, so that a check of it outlasts the stop. */
const asking = new Set<Socket>();
const hung = createServer((socket) => void asking.add(socket));

beforeEach(async () => {
  place = temporaryHome();
  engine = await startSmallEngine();
  await listen(hung);
});
afterEach(async () => {
  await watcher?.stop().catch(() => {});
  watcher = undefined;
  await engine.close();
  for (const socket of asking) {
    socket.destroy();
  }
  asking.clear();
  await new Promise((resolve) => hung.close(resolve));
  place.remove();
});

async function watch(seen: string[]): Promise<Watcher> {
  const config = join(place.directory, "supervisor.yaml");
  writeFileSync(
    config,
    `checks:
  - { name: edge, kind: container, container: edge, every: 500ms, fail_after: 1, heal: { restart: edge, grace: 500ms } }
jobs: { time_zone: UTC }
`,
  );
  const port = portOf(hung);
  return startWatcher({
    home: place.home,
    env: {
      HEARTH_SUPERVISOR_CONFIG: config,
      HEARTH_SUPERVISOR_PORT: "0",
      HEARTH_JOBS: "on",
      DOCKER_HOST: engine.dockerHost,
      NOTES_ADMIN_PASSWORD: "a-password",
      NOTES_URL: `http://127.0.0.1:${port}`,
    },
    runtime: "docker",
    onNotice: () => {},
    onService: () => {},
    onCheck: ({ name, state }) => seen.push(`${name} ${state}`),
  });
}

function restarts(): readonly string[] {
  return engine.requests.filter((request) => request.startsWith("POST"));
}

const ended = {
  state: {
    Status: "exited",
    Pid: 0,
    FinishedAt: new Date().toISOString(),
    Health: null,
  },
};

test("an ended container is restarted unless the supervisor is stopping", async () => {
  const seen: string[] = [];
  engine.containers.set("hearth-edge", {});
  watcher = await watch(seen);
  await waitFor("a first look", () => seen.includes("edge up"));
  engine.containers.set("hearth-edge", ended);
  await waitFor("the restart", () => restarts().length === 1);
});

test("containers stopped by a shutdown of the host are not restarted", async () => {
  const seen: string[] = [];
  engine.containers.set("hearth-edge", {});
  watcher = await watch(seen);
  await waitFor("a first look", () => seen.includes("edge up"));
  await waitFor("a check of the notes store", () => asking.size > 0);
  // Docker signals all containers at the same time, and the supervisor takes longest to stop.
  engine.containers.set("hearth-edge", ended);
  await watcher.stop();
  expect(restarts()).toEqual([]);
  expect(seen).not.toContain("edge down");
});

const disk = createSmallDisk(200);

test.skipIf(disk === undefined)(
  "a supervisor that starts on a full disk is found by commands, runs its checks and reports the disk",
  async () => {
    const { path, fill, remove } = disk ?? expect.fail();
    const config = join(place.directory, "full-disk.yaml");
    const checks = [{ name: "disk", kind: "disk", path, fail_after: 1 }];
    writeFileSync(config, JSON.stringify({ checks }));
    const password = "operator-password-of-the-test";
    const start = () =>
      startWatcher({
        home: locateHome({ HEARTH_HOME: path }),
        env: {
          HEARTH_SUPERVISOR_CONFIG: config,
          HEARTH_SUPERVISOR_PORT: "0",
          HEARTH_OPERATOR_PASSWORD: password,
        },
        runtime: "none",
        onNotice: () => {},
        onService: () => {},
        onCheck: () => {},
      });
    try {
      await (await start()).stop();
      fill();
      const { address } = (watcher = await start());
      expect(readRunFile(join(path, "run.json")).supervisor).toMatchObject({
        pid: process.pid,
        address,
      });
      const login = Buffer.from(`operator:${password}`).toString("base64");
      const page = async () =>
        (
          await fetch(address, { headers: { authorization: `Basic ${login}` } })
        ).text();
      await waitFor("the page to say so", async () =>
        (await page()).includes("Disk is down."),
      );
    } finally {
      await watcher?.stop();
      watcher = undefined;
      remove();
    }
  },
);
