import {
  afterAll,
  beforeAll,
  beforeEach,
  describe,
  expect,
  onTestFailed,
  test,
} from "vitest";
import {
  callSteadily,
  expectNoFailedCall,
  MAX_WAIT_MS,
  type LoadReport,
} from "../infra/callers.ts";
import { call, endsOf, startLoad } from "../faults/calls.ts";
import { entityOfKey } from "../faults/accounts.ts";
import { BUDGET_CALLS, CALL_COST, CROWD, CROWD_CALL } from "../faults/crowd.ts";
import { createRandom } from "../faults/random.ts";
import { ask, say, timed } from "../infra/day-two.ts";
import { expectSignIn } from "../infra/sign-in.ts";
import { kubectl, power } from "./cluster.ts";
import {
  claimsOf,
  createKey,
  expectWholeLedger,
  helmTest,
  isReady,
  newCaller,
  openRelease,
  podsOf,
  secretOf,
  show,
  sql,
  urlOf,
  type Caller,
  type Pod,
  type Release,
} from "./release.ts";
import { startStandby } from "./release-standby.ts";
import {
  nothingUndrained,
  scale,
  untilConnected,
  untilNode2,
  untilReady,
} from "./release-waits.ts";

const PER_SECOND = 50;

let release: Release;
beforeAll(async () => {
  release = await openRelease("hearth");
});
afterAll(() => release.close());
beforeEach(() => onTestFailed(() => show(release)));

describe("a release", () => {
  test("a wrong value is one error, and nothing is installed", async () => {
    const { stack, namespace } = release;
    await stack.setChartValues({ ingress: { enabled: true } });
    await expect(stack.deploy("up")).rejects.toThrow(
      /^invalid values, nothing was changed:\n {2}ingress\.enabled is true without a host name: .*\.$/,
    );
    expect(
      await kubectl([
        "get",
        "all,secrets,persistentvolumeclaims",
        `--namespace=${namespace}`,
        "--output=name",
      ]),
    ).toBe("");
    await stack.setChartValues({});
  });

  test("from `npm run init` to the first call, in a namespace that enforces PodSecurity restricted", async () => {
    await timed("install", () => release.stack.deploy("up"));
    expect((await podsOf(release)).filter(isReady)).toHaveLength(6);
    const answer = await ask(
      await urlOf(release, "gateway"),
      "/v1/chat/completions",
      await createKey(release),
      { model: "mock", messages: [{ role: "user", content: "hello" }] },
    );
    expect(answer).toMatchObject({ choices: [expect.anything()] });
    await expectWholeLedger(release);
  });

  test("a second up changes nothing", async () => {
    const before = (await podsOf(release)).map(uidOf);
    expect(await release.stack.deploy("up")).toEqual(["3 same"]);
    expect((await podsOf(release)).map(uidOf)).toEqual(before);
  });

  test("another salt key, id of the notes or name is rejected, and nothing is changed", async () => {
    const { stack } = release;
    const before = (await podsOf(release)).map(uidOf);
    const saltKey = await stack.changeSetting("saltKey", "s".repeat(20));
    const uuid = await stack.changeSetting("notesUuid", "f".repeat(32));
    await expect(stack.deploy("up")).rejects.toThrow(
      `invalid values, nothing was changed:
  saltKey is not HEARTH_SALT_KEY of the Secret hearth, by which the credentials in Postgres are encrypted: set it to that, or leave it empty.
  notesUuid is ${"f".repeat(32)}, but NOTES_UUID of the ConfigMap hearth-notes is ${uuid}, and with another one every device syncs all notes again: set it to that, or leave it empty.`,
    );
    await stack.changeSetting("saltKey", saltKey);
    await stack.changeSetting("notesUuid", uuid);
    await stack.setChartValues({ nameOverride: "other" });
    await expect(stack.deploy("up")).rejects.toThrow(
      "invalid values, nothing was changed:\n  the objects of this release would be named hearth-other instead of hearth, with empty volumes and new secrets: set nameOverride and fullnameOverride back as they were.",
    );
    await stack.setChartValues({});
    expect(await stack.deploy("up")).toEqual(["3 same"]);
    expect((await podsOf(release)).map(uidOf)).toEqual(before);
  });

  test("pods that cannot start are replaced by those of the next revision", async () => {
    const sets = ["notes", "redis", "supervisor"].map(
      (component) => `statefulset/hearth-${component}`,
    );
    const namespace = `--namespace=${release.namespace}`;
    await kubectl(["set", "image", ...sets, "*=localhost/missing", namespace]);
    await expect
      .poll(async () => (await podsOf(release)).filter(isReady).length, {
        timeout: 120_000,
        interval: 500,
      })
      .toBe(3);
    for (const set of sets) {
      await kubectl(["rollout", "undo", set, namespace]);
    }
    await untilReady(release, 6);
  });

  test("the console offers the sign-in with an account, and the gateways look up the keys of its tokens", async () => {
    const supervisor = await urlOf(release, "supervisor");
    const headers = { accept: "text/html" };
    await expectSignIn(
      async (path) => (await fetch(supervisor + path, { headers })).text(),
      await urlOf(release, "gateway"),
    );
  });

  test("helm test passes", async () => {
    const output = await timed("helm test", () => helmTest(release));
    expect(output).toContain("ready; ");
  });

  test("an upgrade of the gateways fails no call, and the ledger has all of them", async () => {
    const before = (await podsOf(release, "gateway")).map(uidOf);
    await withoutFailedCall(() =>
      timed("upgrade", async () => {
        await release.stack.setChartValues({
          gateway: { env: { NEXT_VERSION: "1" } },
        });
        await release.stack.deploy("up");
      }),
    );
    const after = (await podsOf(release, "gateway")).map(uidOf);
    expect(before.filter((uid) => after.includes(uid))).toEqual([]);
    await expectWholeLedger(release);
  });

  test("growing from two gateways to six fails no call", async () => {
    await withoutFailedCall(() => timed("2 → 6", () => scale(release, 6)));
    await expectWholeLedger(release);
  });

  test("a budget shared by six gateways is used up, and exceeded by less than one call", async () => {
    const gateways = (await podsOf(release, "gateway")).map(gatewayAt);
    expect(gateways).toHaveLength(6);
    const dollars = Math.round(BUDGET_CALLS * CALL_COST * 1e9) / 1e9;
    const account = {
      key: await createKey(release, { max_budget: dollars }),
      fields: {},
    };
    const callAt = (at: number) =>
      call(gateways[at % gateways.length] ?? "", account, CROWD_CALL);
    const received = await Promise.all(
      Array.from({ length: CROWD }, (_, at) => callAt(at)),
    );
    // Those that waited for others' reservations may have left a part of it.
    while (received.at(-1)?.end !== "budget_exceeded") {
      received.push(await callAt(received.length));
      expect(received.length).toBeLessThan(CROWD + 2 * BUDGET_CALLS);
    }
    say(endsOf(received));
    expect(
      received.filter(
        ({ end }) => !["ok", "budget_exceeded", "budget_held"].includes(end),
      ),
    ).toEqual([]);

    await expectWholeLedger(release);
    const rows = await sql<{ spend: number; ended_at: Date }>(
      release,
      "SELECT spend::float8 AS spend, ended_at FROM spend_log WHERE 'key:' || api_key = $1",
      [entityOfKey(account.key)],
    );
    const spentBy = (at: number) =>
      rows
        .filter(({ ended_at }) => ended_at.getTime() <= at)
        .reduce((sum, { spend }) => sum + spend, NANO * rows.length);
    expect(rows).toHaveLength(
      received.filter(({ end }) => end === "ok").length,
    );
    expect(spentBy(Infinity)).toBeLessThan(dollars + CALL_COST);
    // None was rejected while the budget was not used up.
    expect(
      received.filter(
        ({ end, at }) => end === "budget_exceeded" && spentBy(at) < dollars,
      ),
    ).toEqual([]);
  });

  test("shrinking from six gateways to two fails and loses no call: removed gateways drain their journals before they stop", async () => {
    await withoutFailedCall(() => timed("6 → 2", () => scale(release, 2)));
    await expectWholeLedger(release);
    await nothingUndrained(release);
  });

  test("a node that vanishes: calls continue, its pods restart elsewhere, and the ledger has all calls", async () => {
    const gateways = await podsOf(release, "gateway");
    const on = (node: string) =>
      gateways.filter(({ spec }) => spec.nodeName === node).map(gatewayAt);
    const [kept = ""] = on("node1");
    expect(on("node2")).not.toEqual([]);
    // Before: this process keeps connections alive, also those to the node that vanishes.
    const [direct, through] = [
      await newCaller(release),
      await newCaller(release),
    ];
    // Some of these are in flight when their gateway vanishes.
    const lost = startLoad({
      urls: on("node2"),
      accounts: [{ key: direct.key, fields: {} }],
      random: createRandom(1),
      parallel: 8,
      pauseMs: 20,
      onReceived: () => undefined,
    });
    await expect
      .poll(() => release.provider.finished().size)
      .toBeGreaterThan(release.provider.finished().size + 20);
    try {
      await withoutFailedCall(
        async () => {
          await power("off", 2);
          const stopped = lost.stop();
          await timed("noticed", () => untilConnected(through.url));
          // As the documentation of Kubernetes tells operators: StatefulSets never replace a pod that may still run.
          await kubectl([
            "taint",
            "nodes",
            "node2",
            `${OUT_OF_SERVICE}=nodeshutdown:NoExecute`,
          ]);
          await withoutFailedCall(
            () => timed("restarted elsewhere", () => untilReady(release, 6)),
            through,
          );
          await stopped;
        },
        { ...direct, url: kept },
      );
      expect(
        (await podsOf(release)).filter(({ spec }) => spec.nodeName !== "node1"),
      ).toEqual([]);
      // By the gateway that now has the journal of the lost one.
      await expectWholeLedger(release);
    } finally {
      await power("on", 2);
      await kubectl(["taint", "nodes", "node2", `${OUT_OF_SERVICE}-`]);
      await timed("back", () => untilNode2("True"));
    }
    await expectWholeLedger(release);
  });

  test("a destroy keeps volumes and generated secrets, with which a new installation continues", async () => {
    const { stack } = release;
    const key = await createKey(release);
    const secrets = await secretOf(release);
    const claims = await claimsOf(release);
    await timed("destroy", () => stack.deploy("destroy", { yes: true }));
    await untilReady(release, 0);
    expect(await claimsOf(release)).toEqual(claims);
    expect(await secretOf(release)).toEqual(secrets);

    await timed("install again", () => stack.deploy("up"));
    expect(await secretOf(release)).toEqual(secrets);
    await ask(await urlOf(release, "gateway"), "/v1/models", key);
    await expectWholeLedger(release);
  });

  test("a failover of Postgres to a standby without the last calls: none fails, and the ledger has all of them", async () => {
    const standby = await timed("standby", () => startStandby(release));
    await withoutFailedCall(async () => {
      await standby.caughtUp();
      await standby.cutStream();
      await expect
        .poll(() => standby.missingRows(), { timeout: 20_000, interval: 500 })
        .toBeGreaterThan(PER_SECOND);
      say(`the standby lacks ${await standby.missingRows()} calls`);
      await timed("failover", () => standby.failOver());
      // Gateways write again what the standby lacks, and what they took meanwhile.
      await expectWholeLedger(release, 60_000);
    });
    await expectWholeLedger(release);
  });
});

const NANO = 1e-9;
const OUT_OF_SERVICE = "node.kubernetes.io/out-of-service";

function gatewayAt({ status }: Pod): string {
  return `http://${status.podIP}:4000`;
}

/** Calls through the Service, or as given, while something happens; asserts that no call failed. */
async function withoutFailedCall(
  work: () => Promise<unknown>,
  through?: Caller,
): Promise<void> {
  const { url, key } = through ?? (await newCaller(release));
  const load = callSteadily({ baseUrls: [url], key, perSecond: PER_SECOND });
  let report: LoadReport;
  try {
    await work();
  } finally {
    report = await load.stop();
  }
  expectNoFailedCall(report, MAX_WAIT_MS.upgrade, say);
}

function uidOf({ metadata }: Pod): string {
  return metadata.uid;
}
