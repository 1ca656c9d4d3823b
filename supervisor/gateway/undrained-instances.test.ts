import { expect, test } from "vitest";
import type { AdminApi } from "./admin-api.ts";
import { findUndrained } from "./undrained-instances.ts";

const RUNNING = {
  instance: "running",
  this_one: true,
  running: true,
  silent_seconds: 0,
  undrained_calls: 7,
  pending_budgets: 2,
  pending_spend: 0.5,
};

function apiWith(...instances: readonly object[]): AdminApi {
  const api: AdminApi = {
    address: "http://127.0.0.1:4000",
    ask: async () => ({ instances }),
    stream: () => Promise.reject(new Error("not used")),
    as: () => api,
    actingFor: () => api,
  };
  return api;
}

test("a gateway that has been stopped for minutes with calls only in its journal needs attention", async () => {
  const stopped = {
    ...RUNNING,
    instance: "b",
    this_one: false,
    running: false,
  };
  const api = apiWith(
    RUNNING,
    { ...stopped, silent_seconds: 400 },
    { ...stopped, instance: "restarting", silent_seconds: 20 },
    {
      ...stopped,
      instance: "drained",
      silent_seconds: 400,
      undrained_calls: 0,
      pending_budgets: 0,
      pending_spend: 0,
    },
  );
  expect(await findUndrained(api, () => 500_000)()).toEqual([
    {
      name: "gateway instance b",
      about: { topic: "supervisor", id: null },
      level: "warning",
      text: "gateway instance b is stopped with 7 calls and up to $ 0.50 of spend only in its journal: start it again, or forget it if its journal is lost",
      since: 100_000,
      command: "hearth instances forget b",
      output: null,
      tried: [],
      silenced: null,
    },
  ]);
});
