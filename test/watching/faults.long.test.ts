// The most important faults of `npm run test:watching`, with shorter intervals.
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  answers500,
  hung,
  killed,
  portTaken,
  runFault,
  staysUnhealthy,
} from "./faults.ts";
import { openFaultTestbed, type FaultTestbed } from "./fault-testbed.ts";

const checkTiming = {
  every: "1s",
  timeout: "2s",
  cooldown: "1s",
  grace: "1s",
  max: 2,
};
let testbed: FaultTestbed;

beforeAll(async () => {
  testbed = await openFaultTestbed(checkTiming, false);
}, 180_000);
afterAll(() => testbed?.close(), 120_000);

const limit = { timeout: 240_000 };

test("a killed service is restarted at once", limit, async () => {
  const report = await runFault(testbed, killed("notes"));
  expect(report).toMatchObject({
    done: ["started notes again"],
    raised: ["notes ended and is being restarted"],
  });
});

test(
  "a gateway that hangs or returns 500 is restarted once",
  limit,
  async () => {
    for (const fault of [hung("gateway", true), answers500]) {
      const { done, raised } = await runFault(testbed, fault);
      expect(done).toEqual(["restarted gateway"]);
      expect(raised).toEqual([expect.stringMatching(/^gateway is down since/)]);
      await testbed.restart("gateway");
    }
  },
);

test(
  "while Postgres is unavailable, the gateway is neither restarted nor reported",
  limit,
  async () => {
    const gateway = testbed.pidOf("gateway");
    const { raised } = await runFault(testbed, portTaken("postgres", 10_000));
    expect(testbed.pidOf("gateway")).toBe(gateway);
    expect(raised.filter((text) => !text.startsWith("postgres"))).toEqual([]);
  },
);

test(
  "a service that stays unhealthy is restarted up to the limit, then an alert is raised",
  limit,
  async () => {
    await testbed.restart("gateway");
    const { done, raised } = await runFault(testbed, staysUnhealthy);
    expect(done.filter((act) => act === "restarted gateway")).toHaveLength(2);
    expect(raised).toContainEqual(
      expect.stringMatching(/^gateway is no longer restarted: gave up/),
    );
  },
);
