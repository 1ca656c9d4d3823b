import { afterAll, describe, expect, test } from "vitest";
import { PARALLEL } from "../../infra/deploy/deploy-stack.ts";
import {
  containers,
  healthyOn,
  inspect,
  throughSocketProxy,
} from "./containers.ts";
import { ask, quiet, say, timed } from "./day-two.ts";
import { budgetScenarios } from "./one-budget.ts";
import { openFiles } from "./open-files.ts";
import { chat, createKey, EDGES, emptyStack } from "./running.ts";
import { validConfig, secretsOf } from "./stack-config.ts";
import type { Testbed } from "./testbed.ts";
import { expectSignIn, SIGN_IN_SECRETS } from "./sign-in.ts";
import { noAlerts, openPage } from "./supervisors.ts";
import { addresses, runScript } from "./two-engines.ts";

const running = emptyStack();
const OOM = { container: ["hearth-gateway"], event: ["oom"] };

/** A first `up`. The other scenarios continue from the state saved here. */
describe("up", () => {
  let isUp = false;
  afterAll(async () => {
    const state = process.env["HEARTH_DEPLOYED_STATE"];
    if (!isUp || state === undefined) {
      return;
    }
    // Like a power failure: supervisors would try to heal containers that an engine stops one by one.
    await runScript("scripts/hosts.sh", "off");
    await runScript("test/infra/machine.sh", "save", state);
  });

  test("1: first up; a key created through A works through B, and both report the same spend", async () => {
    const testbed = running();
    const { summary } = await timed("up", () =>
      testbed.stack.up({ parallel: PARALLEL, onOutput: quiet }),
    );
    say(`created ${summary.resourceChanges?.create ?? 0} resources`);
    for (const host of ["a", "b"] as const) {
      expect(await healthyOn(testbed, host)).toEqual(
        containers[host].map((name) => `hearth-${name}`),
      );
    }

    isUp = true;
    const key = await createKey(testbed);
    for (const edge of EDGES) {
      await chat(edge, key, `hello through ${edge}`);
    }
    const spends = await Promise.all(
      EDGES.map((edge) => spendOf(testbed, edge, key)),
    );
    expect(spends[0]).toBeGreaterThan(0);
    expect(spends[1]).toBe(spends[0]);

    for (const address of Object.values(addresses)) {
      const up = await fetch(`http://${address}:5984/_up`);
      expect(await up.json()).toEqual({ status: "ok", seeds: {} });
    }
  });

  budgetScenarios(running);

  test("CouchDB's container has its limits, and no container shows a secret", async () => {
    const testbed = running();
    const [notes] = await inspect(testbed, "a", "hearth-couchdb");
    expect(notes?.HostConfig).toMatchObject({
      Memory: 1024 * 1024 * 1024,
      MemoryReservation: 512 * 1024 * 1024,
      NanoCpus: 0,
      Ulimits: [
        { Name: "core", Soft: 0, Hard: 0 },
        { Name: "nofile", Soft: openFiles, Hard: openFiles },
      ],
      Binds: ["hearth-notes:/opt/couchdb/data:rw"],
    });
    expect(notes?.Config.Healthcheck.Interval).toBe(30_000_000_000);
    const secrets = [
      ...secretsOf(validConfig),
      ...Object.values(SIGN_IN_SECRETS),
    ];
    for (const host of ["a", "b"] as const) {
      const shown = JSON.stringify(
        await inspect(
          testbed,
          host,
          ...containers[host].map((name) => `hearth-${name}`),
        ),
      );
      const processes = await Promise.all(
        containers[host].map((name) =>
          testbed.docker(host, "top", `hearth-${name}`, "-eo", "pid,args"),
        ),
      );
      for (const secret of secrets) {
        expect(shown).not.toContain(secret);
        expect(processes.join("\n")).not.toContain(secret);
      }
    }
  });

  test("both consoles offer the sign-in with an account, and both gateways look up the keys of its tokens", async () => {
    for (const host of ["a", "b"] as const) {
      await expectSignIn(
        (path) => openPage(host, path),
        `http://${addresses[host]}:4000`,
      );
    }
  });

  test("the socket proxy allows what the supervisor needs, and nothing else", async () => {
    const testbed = running();
    await testbed.docker(
      "a",
      "create",
      "--name",
      "stranger",
      "hearth-test/node",
    );
    try {
      const requests: readonly (readonly [string, string, number])[] = [
        ["GET", "/v1.41/containers/json", 200],
        ["GET", "/containers/hearth-gateway/json", 200],
        ["GET", "/containers/hearth-gateway/logs?stdout=1&tail=1", 200],
        ["GET", "/containers/hearth-gateway/stats?stream=false", 200],
        ["GET", oomEvents(), 200],
        ["GET", `/v1.41${oomEvents()}`, 200],
        ["GET", "/events", 403],
        ["GET", "/events?since=0.000", 403],
        ["GET", oomEvents().replace("&until=1.000", ""), 403],
        ["GET", oomEvents({ until: "9999999999.000" }), 403],
        ["GET", `${oomEvents()}&until=9999999999.000`, 403],
        ["GET", oomEvents({ filters: { event: ["oom"] } }), 403],
        ["GET", oomEvents({ filters: { ...OOM, event: ["exec_start"] } }), 403],
        [
          "GET",
          oomEvents({ filters: { ...OOM, container: ["stranger"] } }),
          403,
        ],
        ["GET", oomEvents({ filters: { ...OOM, type: ["image"] } }), 403],
        ["GET", `${oomEvents()}&filters=%7B%7D`, 403],
        ["POST", oomEvents(), 403],
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
      for (const [method, path, status] of requests) {
        expect(
          await throughSocketProxy(testbed, method, path),
          `${method} ${path}`,
        ).toBe(status);
      }
    } finally {
      await testbed.docker("a", "rm", "-f", "stranger");
    }
  });

  test("no alert was raised", () => noAlerts(running(), 0));
});

/** A request for past events, in the form of the supervisor's. */
function oomEvents({
  until = "1.000",
  filters = OOM,
}: { readonly until?: string; readonly filters?: object } = {}): string {
  return `/events?since=0.000&until=${until}&filters=${encodeURIComponent(JSON.stringify(filters))}`;
}

/** The key's spend, as reported by this edge's gateway once the ledger has both calls. */
async function spendOf(
  { masterKey }: Testbed,
  edge: string,
  key: string,
): Promise<number> {
  let last = -1;
  return expect
    .poll(
      async () => {
        const { info } = await ask(edge, `/key/info?key=${key}`, masterKey);
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
