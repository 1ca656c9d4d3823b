import { expect, test } from "vitest";
import type { DeploymentRow } from "./deployments.ts";
import { perMillion, stateOfDeployment } from "./deployment-states.ts";
import type { DeploymentStatistics } from "./model-statistics.ts";

type Info = Partial<DeploymentRow["model_info"]>;

function stateOf(info: Info, statistics?: Partial<DeploymentStatistics>) {
  const row = {
    model_info: {
      blocked: false,
      waits_for: null,
      cooling_down_until: null,
      runner: null,
      ...info,
    },
  } as Pick<DeploymentRow, "model_info">;
  const { word, why } = stateOfDeployment(
    row,
    statistics === undefined
      ? undefined
      : ({
          answered_at: null,
          last_failure: null,
          ...statistics,
        } as DeploymentStatistics),
    "UTC",
  );
  return [word, why];
}

const ANSWERED = "2026-11-21T10:00:00.000Z";
const failure = (at: string) => ({ at, status: 500, error: "it broke \u202e" });

test("a deployment that answered is serving, one without calls is ready", () => {
  expect(stateOf({})).toEqual(["ready", ""]);
  expect(stateOf({}, { answered_at: ANSWERED })).toEqual(["serving", ""]);
});

test("a failure after the last answer is shown, an earlier one is over", () => {
  const later = failure("2026-11-21T10:00:01.000Z");
  const earlier = failure("2026-11-21T09:59:59.000Z");
  expect(stateOf({}, { last_failure: later })).toEqual([
    "failing",
    "it broke ",
  ]);
  expect(stateOf({}, { answered_at: ANSWERED, last_failure: later })[0]).toBe(
    "failing",
  );
  expect(stateOf({}, { answered_at: ANSWERED, last_failure: earlier })[0]).toBe(
    "serving",
  );
  const runner = { reachable: false };
  expect(stateOf({ runner }, { answered_at: ANSWERED })).toEqual([
    "failing",
    "its runner does not answer",
  ]);
});

test("switched off comes before pending, pending before cooling down, cooling down before failing", () => {
  const cooling: Info = { cooling_down_until: "2026-11-21T10:02:00.000Z" };
  const failing = { last_failure: failure(ANSWERED) };
  expect(stateOf(cooling, failing)).toEqual([
    "cooling down until 10:02",
    "it broke ",
  ]);
  const pending: Info = { ...cooling, waits_for: "OPENAI_API_KEY" };
  expect(stateOf(pending, failing)).toEqual([
    "pending",
    "needs OPENAI_API_KEY",
  ]);
  expect(stateOf({ ...pending, blocked: true }, failing)).toEqual(["off", ""]);
});

test("prices are per million tokens", () => {
  expect(perMillion(0.00000015)).toBe("0.15");
  expect(perMillion(0)).toBe("0");
  expect(perMillion(null)).toBeNull();
});
