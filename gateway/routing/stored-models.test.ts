import { setImmediate as nextTurn } from "node:timers/promises";
import { pino } from "pino";
import { expect, test } from "vitest";
import type { Deployment, GatewayConfig } from "../config/types.ts";
import type { Pool } from "../database/pool.ts";
import { createStoredModels } from "./stored-models.ts";

test("what a read has missed is not lost when a later one ends first", async () => {
  const blocked: string[] = [];
  const unanswered: (() => void)[] = [];
  const pool = {
    query({ text }: { readonly text: string }) {
      const rows = text.includes("FROM blocked_models")
        ? blocked.map((model_id) => ({ model_id }))
        : [];
      const { promise, resolve } = Promise.withResolvers<object>();
      unanswered.push(() => resolve({ rows }));
      return promise;
    },
  };
  const models = createStoredModels({
    pool: pool as unknown as Pool,
    keys: () => ({}) as GatewayConfig["general"],
    env: {},
    log: pino({ level: "silent" }),
  });
  const first = models.load();
  for (const _statement of ["models", "credentials"]) {
    unanswered.pop()?.();
    await nextTurn();
  }
  // Its last statement has been sent.
  blocked.push("one");
  let isRead = false;
  void Promise.all([first, models.load()]).then(() => (isRead = true));
  while (!isRead) {
    // The latest first.
    unanswered.pop()?.();
    await nextTurn();
  }
  const deployment = { id: "one", pending: null } as unknown as Deployment;
  expect(models.withStored(deployment).blocked).toBe(true);
});
