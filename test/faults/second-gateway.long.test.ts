import { expect, inject, test } from "vitest";
import { createKey } from "./accounts.ts";
import { call } from "./calls.ts";
import { openTestbed } from "./testbed.ts";

test("a second gateway without Redis on the same database fails to start with the reason", async () => {
  const testbed = await openTestbed(inject("postgresUrl"), {
    gateways: 2,
    redis: false,
    start: false,
  });
  try {
    const [first, second] = testbed.gateways;
    if (first === undefined || second === undefined) {
      throw new Error("too few gateways");
    }
    await first.start();
    second.launch();
    expect(await second.exited()).toBe(1);
    expect(second.output()).toContain(
      "hearth: another gateway without Redis uses this database: set REDIS_HOST for both, or stop the other one.",
    );
    const account = { key: await createKey(testbed, first, {}), fields: {} };
    const answer = await call(first.url, account, {
      stream: false,
      tokens: 4,
      delayMs: 0,
      chunkDelayMs: 0,
      leaveAfter: null,
    });
    expect(answer.end).toBe("ok");
  } finally {
    await testbed.close();
  }
});
