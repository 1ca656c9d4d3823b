import type { OpMap } from "@pulumi/pulumi/automation/stack.js";
import {
  afterAll,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFailed,
  test,
} from "vitest";
import { parallel } from "../../scripts/deploy-stack.ts";
import {
  changedSince,
  containerIds,
  containers,
  healthyOn,
  inspect,
  showContainers,
  throughSocketProxy,
} from "./containers.ts";
import { callSteadily } from "./callers.ts";
import { dataScenarios } from "./data.ts";
import { ask, deploy, say, timed } from "./day-two.ts";
import { interruptionScenarios } from "./interruption.ts";
import { lossScenarios } from "./loss.ts";
import { budgetScenarios } from "./one-budget.ts";
import { removedByHandScenarios } from "./removed-by-hand.ts";
import { rotationScenarios } from "./rotation.ts";
import { testContainerFaults } from "./container-faults.ts";
import { secretsOf, rightConfig } from "./stack-config.ts";
import { setUpStand, type Stand } from "./stand.ts";
import { addresses, whyNot } from "./two-engines.ts";

const edges = [`http://${addresses.a}:4000`, `http://${addresses.b}:4000`];
let stand: Stand;
let key = "";

beforeAll(async () => {
  const reason = whyNot();
  if (reason !== null) throw new Error(reason);
  stand = await setUpStand();
  say(stand.description);
});
afterAll(() => stand?.remove());
beforeEach(() => onTestFailed(() => showContainers(stand)));

describe("two hosts", () => {
  const running = () => ({ stand, key });

  test("1: up from nothing; a key made through A works through B, and both tell one spend", async () => {
    const { summary } = await timed("up", () =>
      stand.stack.up({ parallel, onOutput: quiet }),
    );
    say(`made ${count(summary.resourceChanges, "create")} resources`);
    for (const host of ["a", "b"] as const)
      expect(await healthyOn(stand, host)).toEqual(
        containers[host].map((name) => `hearth-${name}`),
      );

    key = String(
      (
        await ask(edges[0], "/key/generate", stand.masterKey, {
          user_id: "ann",
          max_budget: 1,
        })
      ).key,
    );
    for (const edge of edges)
      await ask(edge, "/v1/chat/completions", key, {
        model: "mock",
        max_tokens: 10,
        messages: [{ role: "user", content: `hello through ${edge}` }],
      });
    const spends = await Promise.all(edges.map((edge) => spendOf(edge)));
    expect(spends[0]).toBeGreaterThan(0);
    expect(spends[1]).toBe(spends[0]);

    for (const address of Object.values(addresses)) {
      const up = await fetch(`http://${address}:5984/_up`);
      expect(await up.json()).toEqual({ status: "ok", seeds: {} });
    }
  });

  budgetScenarios(running);

  test("CouchDB's container has its limits, and no container shows a secret", async () => {
    const [notes] = await inspect(stand, "a", "hearth-couchdb");
    expect(notes?.HostConfig).toMatchObject({
      Memory: 1024 * 1024 * 1024,
      MemoryReservation: 512 * 1024 * 1024,
      NanoCpus: 0,
      Ulimits: [
        { Name: "nofile", Soft: stand.openFiles, Hard: stand.openFiles },
      ],
      Binds: ["hearth-notes:/opt/couchdb/data:rw"],
    });
    expect(notes?.Config.Healthcheck.Interval).toBe(30_000_000_000);
    const secrets = secretsOf(rightConfig);
    for (const host of ["a", "b"] as const) {
      const shown = JSON.stringify(
        await inspect(
          stand,
          host,
          ...containers[host].map((name) => `hearth-${name}`),
        ),
      );
      const processes = await Promise.all(
        containers[host].map((name) =>
          stand.docker(host, "top", `hearth-${name}`, "-eo", "pid,args"),
        ),
      );
      for (const secret of secrets) {
        expect(shown).not.toContain(secret);
        expect(processes.join("\n")).not.toContain(secret);
      }
    }
  });

  test("the socket proxy lets through what the supervisor needs, and nothing else", async () => {
    await stand.docker("a", "create", "--name", "stranger", "hearth-test/node");
    try {
      const asked: readonly (readonly [string, string, number])[] = [
        ["GET", "/v1.41/containers/json", 200],
        ["GET", "/containers/hearth-gateway/json", 200],
        ["GET", "/containers/hearth-gateway/logs?stdout=1&tail=1", 200],
        ["GET", "/containers/hearth-gateway/stats?stream=false", 200],
        ["GET", "/containers/stranger/json", 403],
        ["POST", "/containers/stranger/restart", 403],
        ["GET", "/containers/hearth-gateway/archive?path=/run/hearth", 403],
        ["GET", "/containers/hearth-gateway/export", 403],
        ["POST", "/containers/hearth-gateway/exec", 403],
        ["POST", "/containers/create", 403],
        ["GET", "/containers/hearth-gateway%2Fjson", 403],
        ["GET", "/containers/hearth-gateway/../stranger/json", 403],
        ["DELETE", "/containers/hearth-gateway", 403],
        ["GET", "/info", 403],
        ["GET", "/images/json", 403],
      ];
      for (const [method, path, status] of asked)
        expect(
          await throughSocketProxy(stand, method, path),
          `${method} ${path}`,
        ).toBe(status);
    } finally {
      await stand.docker("a", "rm", "-f", "stranger");
    }
  });

  test("2: a second preview is empty, and a refresh finds no drift", async () => {
    await timed("preview", () =>
      stand.stack.preview({ expectNoChanges: true, parallel, onOutput: quiet }),
    );
    const { summary } = await timed("refresh", () =>
      stand.stack.refresh({ expectNoChanges: true, parallel, onOutput: quiet }),
    );
    expect(changes(summary.resourceChanges)).toEqual([]);
    await timed("preview after refresh", () =>
      stand.stack.preview({ expectNoChanges: true, parallel, onOutput: quiet }),
    );
  });

  test("3: one setting changed by the plain pulumi command replaces exactly one container; data and keys stay", async () => {
    const before = await containerIds(stand);
    // What the automation API made, the plain command finds unchanged.
    await timed("pulumi preview", () =>
      stand.pulumi("preview", "--expect-no-changes"),
    );
    const memory = { postgres: 256, redis: 160, gateway: 512 };
    await stand.pulumi(
      ...["config", "set", "hearth:memory", JSON.stringify(memory)],
    );
    const told = await timed("pulumi up", () =>
      stand.pulumi("up", "--yes", "--skip-preview", "--parallel", "4"),
    );
    expect(told).toMatch(/1 replaced\n/);
    say(inOneLine(/Resources:\n([^]*?)\n\n/.exec(told)?.[1] ?? told));
    expect(await changedSince(stand, before)).toEqual(["a hearth-redis"]);
    await ask(edges[1], "/v1/chat/completions", key, {
      model: "mock",
      max_tokens: 10,
      messages: [{ role: "user", content: "still there?" }],
    });
  });

  test("ten mistakes at once are ten sentences, and nothing is touched", async () => {
    const before = await containerIds(stand);
    const right = await stand.stack.getAllConfig();
    const hosts = JSON.parse(right["hearth:hosts"]?.value ?? "") as {
      readonly a: object;
      readonly b: object;
    };
    const mistakes: Readonly<Record<string, string>> = {
      hosts: JSON.stringify({
        a: { ...hosts.a, docker: "192.168.1.10" },
        b: { ...hosts.b, publish: ["0.0.0.0"] },
      }),
      placement: JSON.stringify({ redis: "c" }),
      memory: JSON.stringify({ gateway: 1 }),
      edge: JSON.stringify({ tls: "yes" }),
      drainTimeout: "soon",
      localRunnerA: "http://localhost:11434",
      notesUuid: "short",
      backupDirectory: "here",
      colour: "blue",
    };
    await stand.configure(mistakes);
    const refused = await stand
      .pulumi("up", "--yes", "--skip-preview")
      .then(() => "")
      .catch((error: { readonly stdout: string }) => error.stdout);
    const wrong = [
      ...refused.matchAll(
        /^ *hearth:(\S+) .*: (?:.* \| )?npx pulumi config (?:set|rm) /gm,
      ),
    ].map(([, name]) => name);
    expect(wrong.toSorted()).toEqual([
      ...[
        "backupDirectory",
        "colour",
        "drainTimeout",
        "edge.tls",
        "hosts.a.docker",
      ],
      ...["hosts.b.publish.0", "localRunnerA"],
      ...["memory.gateway", "notesUuid", "placement.redis"],
    ]);
    expect(await containerIds(stand)).toEqual(before);
    await stand.stack.removeAllConfig(
      Object.keys(await stand.stack.getAllConfig()),
    );
    await stand.stack.setAllConfig(right);
  });

  test("3: a new gateway image under load through both edges: no call fails", async () => {
    const before = await containerIds(stand);
    const load = callSteadily({ baseUrls: edges, key, perSecond: 10 });
    // Another base is another image; another tag of the same one would not be.
    for (const host of ["a", "b"] as const) await stand.makeNextBase(host);
    const images = JSON.parse(
      (await stand.stack.getConfig("hearth:images")).value,
    ) as Record<string, string>;
    await stand.configure({
      images: JSON.stringify({ ...images, nodeBase: "hearth-test/node:next" }),
    });
    await timed("up", () => stand.stack.up({ parallel, onOutput: quiet }));
    const { calls, streams, failures } = await load.stop();
    say(
      `${calls} calls, ${streams} of them streams, ${failures.length} failed`,
    );
    expect(failures).toEqual([]);
    expect(await changedSince(stand, before)).toEqual([
      "a hearth-gateway",
      "a hearth-supervisor",
      "b hearth-gateway",
      "b hearth-supervisor",
    ]);
  });

  testContainerFaults(() => stand, say);

  test("5: a gateway that never becomes healthy fails the up and leaves the other one serving; the old image mends it", async () => {
    const images = JSON.parse(
      (await stand.stack.getConfig("hearth:images")).value,
    ) as Record<string, string>;
    // An image that runs and answers nothing.
    for (const host of ["a", "b"] as const)
      await stand.docker(
        host,
        "tag",
        "hearth-test/haproxy",
        "hearth-test/sick:latest",
      );
    const before = await containerIds(stand);
    const load = callSteadily({ baseUrls: edges, key, perSecond: 10 });
    await stand.configure({
      images: JSON.stringify({ ...images, gateway: "hearth-test/sick:latest" }),
    });
    const { code, said } = await timed("failing up", () =>
      deploy(stand, ["up"]),
    );
    expect(code, said).toBe(1);
    expect(said).toContain("container failed to be in healthy state");
    expect(said.match(/The last that .* said:/g)).toEqual([
      "The last that hearth-gateway on host B said:",
    ]);
    expect(said).toMatch(/said:\n[^]*Cannot open configuration file/);
    expect((await containerIds(stand))["a hearth-gateway"]).toBe(
      before["a hearth-gateway"],
    );
    await stand.configure({ images: JSON.stringify(images) });
    await timed("mending up", () =>
      stand.stack.up({ parallel, onOutput: quiet }),
    );
    const { calls, streams, failures } = await load.stop();
    say(
      `${calls} calls, ${streams} of them streams, ${failures.length} failed`,
    );
    expect(failures).toEqual([]);
    for (const host of ["a", "b"] as const)
      expect(await healthyOn(stand, host)).toHaveLength(
        containers[host].length,
      );
  });

  lossScenarios(running);
  removedByHandScenarios(running);
  rotationScenarios(running);
  dataScenarios(running);
  interruptionScenarios(running);
});

/** What the key has spent, as this edge's gateway tells once the ledger has both calls. */
async function spendOf(edge: string): Promise<number> {
  let last = -1;
  return expect
    .poll(
      async () => {
        const { info } = await ask(
          edge,
          `/key/info?key=${key}`,
          stand.masterKey,
        );
        const { spend } = info as { readonly spend: number };
        const settled = spend > 0 && spend === last;
        last = spend;
        return settled;
      },
      { timeout: 30_000, interval: 3_000 },
    )
    .toBe(true)
    .then(() => last);
}

function count(changes: OpMap | undefined, operation: keyof OpMap): number {
  return changes?.[operation] ?? 0;
}

function changes(map: OpMap | undefined): readonly string[] {
  return Object.keys(map ?? {}).filter((operation) => operation !== "same");
}

function inOneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

function quiet(): void {}
