import { afterEach, expect, test } from "vitest";
import { pino } from "pino";
import { RunnerDouble } from "../../test/servers/runner.ts";
import { secret } from "../config/secret.ts";
import { testDeployment } from "../providers/stream-fixture.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { Runners } from "./runners.ts";

const RUNNER_KEY = "key-of-the-runner";

let double: RunnerDouble;
let runners: Runners;

afterEach(async () => {
  await runners.close();
  await double.stop();
});

async function startRunners(
  all: (url: string) => readonly PricedDeployment[],
  key: string | null = null,
): Promise<readonly PricedDeployment[]> {
  double = new RunnerDouble("vllm", ["m"]);
  double.key = key;
  await double.start();
  const deployments = all(double.url);
  runners = new Runners({
    deployments: () => deployments,
    probeMs: () => 60_000,
    connectMs: 1_000,
    timeZone: "UTC",
    leases: null,
    log: pino({ level: "silent" }),
  });
  return deployments;
}

const deployment = (
  apiBase: string,
  fields: Partial<PricedDeployment>,
): PricedDeployment =>
  testDeployment({ model: "m", apiBase, local: true, ...fields });

test("the state of a runner is known to deployments with its key, whatever keys others at its address have", async () => {
  const deployments = await startRunners(
    (url) => [
      deployment(url, { apiKey: secret(RUNNER_KEY) }),
      deployment(`${url}/v1`, { apiKey: secret("another") }),
    ],
    RUNNER_KEY,
  );
  await expect
    .poll(() => deployments.map((each) => runners.stateOf(each) !== null))
    .toEqual([true, true]);
  expect(
    deployments.map((each) => runners.stateOf(each)?.report?.kind),
  ).toEqual(["vllm", undefined]);
});

test("a team's own model does not change the slots of the operator's at the same address", async () => {
  const [own, same, ofTeam, ofOther] = await startRunners((url) =>
    [
      { slots: 4, publicOnly: false, teamId: null },
      { slots: 4, publicOnly: false, teamId: null },
      { slots: 1, publicOnly: true, teamId: "team" },
      { slots: 2, publicOnly: true, teamId: "other" },
    ].map(({ slots, ...fields }) =>
      deployment(url, {
        ...fields,
        runner: {
          slots,
          queueLimit: 1,
          queueTimeoutMs: 1_000,
          coldLoadTimeoutMs: 1_000,
          preload: { atStart: false, crons: [] },
        },
      }),
    ),
  );
  const queueOf = (each: PricedDeployment | undefined) =>
    runners.slots.of(each!);
  expect(queueOf(own)).toBe(queueOf(same));
  const limits = [own, ofTeam, ofOther].map((each) => queueOf(each)?.limit);
  expect(limits).toEqual([4, 1, 2]);
  expect(queueOf(own)?.limit).toBe(4);
});
