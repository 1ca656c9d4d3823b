import type OpenAI from "openai";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { TestGateway } from "../../test/servers/gateway.ts";
import { query } from "../database/pool.ts";
import type { TalkingProvider } from "./provider-fixture.ts";
import {
  allOf,
  ended,
  errorOf,
  eventsUntilText,
  numbersOf,
  polled,
  PRICE,
  startResponsesTestbed,
  type ResponseEvent,
  type ResponsesTestbed,
} from "./testbed-fixture.ts";

let testbed: ResponsesTestbed;
let provider: TalkingProvider;
let gateway: TestGateway;
let anna: OpenAI;

beforeAll(async () => {
  testbed = await startResponsesTestbed();
  ({ provider, gateway } = testbed);
  anna = await testbed.clientOf({ user_id: "anna" });
});

afterAll(() => testbed?.stop());

test.each(["chat", "native"])(
  "%s is polled for, continued, and billed once at its price",
  async (model) => {
    const user = `poller-${model}`;
    const client = await testbed.clientOf({ user_id: user });
    const first = await client.responses.create({ model, input: "First." });
    const queued = await client.responses.create({
      model,
      input: "wait for it",
      background: true,
      previous_response_id: first.id,
    });
    expect(queued).toMatchObject({
      status: "queued",
      background: true,
      output: [],
      previous_response_id: first.id,
    });
    await vi.waitUntil(async () => {
      const { status } = await client.responses.retrieve(queued.id);
      return status === "in_progress";
    }, 60_000);
    const early = await errorOf(
      client.responses.create({
        model,
        input: "Go on.",
        previous_response_id: queued.id,
      }),
    );
    expect(early.message).toContain("has not ended");
    await vi.waitUntil(() => provider.waiting() > 0, 60_000);
    provider.release();
    const answer = await ended(client, queued.id);
    expect(answer).toMatchObject({
      id: queued.id,
      status: "completed",
      background: true,
    });
    expect(answer.output_text).toContain("You said: wait for it");
    const next = await client.responses.create({
      model: "chat",
      input: "Go on.",
      previous_response_id: queued.id,
    });
    expect(next.output_text).toBe("You said: Go on.");
    expect(provider.chats.at(-1)?.["messages"]).toHaveLength(5);
    const rows = await testbed.rowsOf(user, 3);
    expect(rows).toHaveLength(3);
    for (const row of rows) {
      expect(row.status).toBe("success");
      expect(row.spend).toBeCloseTo(PRICE, 12);
    }
  },
);

test.each(["chat", "native"])(
  "%s is cancelled, and billed for what was generated",
  async (model) => {
    const user = `canceller-${model}`;
    const client = await testbed.clientOf({ user_id: user });
    const { id } = await client.responses.create({
      model,
      input: "wait for ever",
      background: true,
    });
    await vi.waitUntil(() => provider.waiting() > 0, 60_000);
    const cancelled = await client.responses.cancel(id);
    expect(cancelled).toMatchObject({ id, status: "cancelled" });
    expect(await client.responses.cancel(id)).toEqual(cancelled);
    await vi.waitUntil(() => provider.waiting() === 0, 60_000);
    const [row, ...others] = await testbed.rowsOf(user, 1);
    expect(others).toEqual([]);
    expect(row?.spend).toBeGreaterThan(0);
    expect((await client.responses.retrieve(id)).status).toBe("cancelled");
    expect(gateway.running.gateway.activeCalls.count()).toBe(0);
  },
);

test.each([
  ["chat", "break off"],
  ["native", "break off"],
  ["native", "break plainly"],
])(
  "%s that was asked to %s has failed, with the error but not the address of its provider",
  async (model, input) => {
    const { id } = await anna.responses.create({
      model,
      input,
      background: true,
    });
    const { status, error } = await ended(anna, id);
    expect(status).toBe("failed");
    expect(error?.message).toBe("the provider ran out of memory");
  },
);

test("a deleted one is cancelled", async () => {
  const { id } = await anna.responses.create({
    model: "chat",
    input: "wait for ever",
    background: true,
  });
  await vi.waitUntil(() => provider.waiting() > 0, 60_000);
  await anna.responses.delete(id);
  await vi.waitUntil(() => provider.waiting() === 0, 60_000);
  expect((await errorOf(anna.responses.retrieve(id))).status).toBe(404);
});

test("what rejects a call is answered at once; a provider's failure is polled for", async () => {
  const poor = await testbed.clientOf({ max_budget: 0 });
  const call = { model: "chat", input: "Hello", background: true };
  const rejected = await errorOf(poor.responses.create(call));
  expect(rejected.message).toMatch(/budget/i);
  const unfit = { ...call, store: false };
  expect((await errorOf(anna.responses.create(unfit))).message).toContain(
    "`background` requires a stored response",
  );
  const { id } = await anna.responses.create({
    ...call,
    input: "fail with 400",
  });
  const failed = await ended(anna, id);
  expect(failed.status).toBe("failed");
  expect(failed.error?.message).toContain("asked to fail");
  const next = { model: "chat", input: "Hm.", previous_response_id: id };
  expect((await errorOf(anna.responses.create(next))).message).toContain(
    "has no answer to continue (failed)",
  );
  const direct = await anna.responses.create({ model: "chat", input: "Hi." });
  expect((await errorOf(anna.responses.cancel(direct.id))).message).toContain(
    "Only a response in background",
  );
});

test.each(["chat", "native"])(
  "%s is followed, and again from any event after a disconnect",
  async (model) => {
    const user = `follower-${model}`;
    const client = await testbed.clientOf({ user_id: user });
    const stream = await client.responses.create({
      model,
      input: "wait for it",
      background: true,
      stream: true,
    });
    // Its client leaves; the response goes on.
    const before = await eventsUntilText(stream);
    expect(before.slice(0, 2).map(({ type }) => type)).toEqual([
      "response.created",
      "response.queued",
    ]);
    const { id } = (before[0] as { response: { id: string } }).response;
    const last = numbersOf(before).at(-1) ?? 0;
    const resumed = await client.responses.retrieve(id, {
      stream: true,
      starting_after: last,
    });
    provider.release();
    const after = await allOf(resumed);
    const all = [...before, ...after];
    expect(numbersOf(all)).toEqual(all.map((_event, at) => at));
    const answer = await client.responses.retrieve(id);
    expect(answer.status).toBe("completed");
    expect(after.at(-1)).toMatchObject({
      type: "response.completed",
      response: { id, background: true, output: answer.output },
    });
    // All of it again, and nothing after its end.
    const follow = async (starting_after?: number) =>
      allOf(
        await client.responses.retrieve(id, {
          stream: true,
          ...(starting_after === undefined ? {} : { starting_after }),
        }),
      );
    expect(await follow()).toEqual(all);
    expect(await follow(all.length - 1)).toEqual([]);
    const [row, ...others] = await testbed.rowsOf(user, 1);
    expect(others).toEqual([]);
    expect(row?.spend).toBeCloseTo(PRICE, 12);

    const rows = () =>
      query<{ row: string }>(
        testbed.pool,
        "SELECT e::text AS row FROM response_events e WHERE response_id = $1",
        [id],
      );
    const sealed = await rows();
    expect(sealed.length).toBeGreaterThan(1);
    expect(sealed.filter((one) => one.row.includes("said"))).toEqual([]);
    await client.responses.delete(id);
    expect(await rows()).toEqual([]);
  },
);

test("what fails or is cancelled ends its stream as polling shows it; what cannot be followed says so", async () => {
  const call = { model: "chat", background: true, stream: true } as const;
  const failing = await allOf(
    await anna.responses.create({ ...call, input: "fail with 400" }),
  );
  const failed = failing.at(-1) as { response: { id: string } };
  expect(failed).toMatchObject({
    type: "response.failed",
    response: await polled(anna, failed.response.id),
  });
  const stream = await anna.responses.create({
    ...call,
    input: "wait for ever",
  });
  const events: ResponseEvent[] = [];
  for await (const event of stream) {
    events.push(event);
    if (event.type === "response.output_text.delta") {
      const { id } = (events[0] as { response: { id: string } }).response;
      await anna.responses.cancel(id);
    }
  }
  expect(events.at(-1)).toMatchObject({ response: { status: "cancelled" } });
  await vi.waitUntil(() => provider.waiting() === 0, 60_000);

  const poor = await testbed.clientOf({ max_budget: 0 });
  const rejected = errorOf(poor.responses.create({ ...call, input: "Hi" }));
  expect((await rejected).message).toMatch(/budget/i);
  const direct = await anna.responses.create({ model: "chat", input: "Hi" });
  const unrecorded = await errorOf(
    anna.responses.retrieve(direct.id, { stream: true }),
  );
  expect(unrecorded).toMatchObject({ status: 400, param: "stream" });
  const strange = poor.responses.retrieve(failed.response.id, {
    stream: true,
  });
  expect((await errorOf(strange)).status).toBe(404);
});

test("one whose gateway was lost fails when its lease ends", async () => {
  const client = await testbed.clientOf({ user_id: "lost" });
  const { id } = await client.responses.create({
    model: "chat",
    input: "Hello",
    background: true,
  });
  await ended(client, id);
  await query(
    gateway.running.gateway.pool,
    "UPDATE responses SET status = 'in_progress', runs_until = now() - interval '1 s' WHERE response_id = $1",
    [id],
  );
  const lost = await client.responses.retrieve(id);
  expect(lost.status).toBe("failed");
  expect(lost.error?.message).toContain("stopped before it had ended");
  expect(await client.responses.retrieve(id)).toEqual(lost);
});
