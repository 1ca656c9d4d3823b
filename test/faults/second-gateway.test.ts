import { expect, inject, test } from "vitest";
import { makeKey } from "./accounts.ts";
import { call } from "./calls.ts";
import { openStand } from "./stand.ts";

test("a second gateway without Redis on the same database refuses to start and says why", async () => {
  const stand = await openStand(inject("postgresUrl"), {
    gateways: 2,
    redis: false,
    start: false,
  });
  try {
    const [first, second] = stand.gateways;
    if (first === undefined || second === undefined) {
      throw new Error("too few gateways");
    }
    await first.start();
    second.launch();
    expect(await second.exited()).toBe(1);
    expect(second.said()).toContain(
      "hearth: another gateway without Redis uses this database: set REDIS_HOST for both, or stop the other one.",
    );
    const account = { key: await makeKey(stand, first, {}), fields: {} };
    const answer = await call(first.url, account, {
      stream: false,
      tokens: 4,
      delayMs: 0,
      chunkDelayMs: 0,
      leaveAfter: null,
    });
    expect(answer.end).toBe("ok");
  } finally {
    await stand.close();
  }
});
