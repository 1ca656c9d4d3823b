import type OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  createGatewayProcess,
  type GatewayProcess,
} from "../../test/servers/gateway-process.ts";
import type { TestGateway } from "../../test/servers/gateway.ts";
import {
  hasRedisServer,
  startRedis,
  type TestRedis,
} from "../../test/servers/redis.ts";
import { query } from "../database/pool.ts";
import type { TalkingProvider } from "./provider-fixture.ts";
import { SocketClient } from "./socket/client-fixture.ts";
import {
  ended,
  errorOf,
  PRICE,
  startResponsesTestbed,
  type ResponsesTestbed,
} from "./testbed-fixture.ts";

type Event = OpenAI.Responses.ResponseStreamEvent;

const numbersOf = (events: readonly Event[]) =>
  events.map(({ sequence_number }) => sequence_number);

async function allOf(stream: AsyncIterable<Event>): Promise<readonly Event[]> {
  const events: Event[] = [];
  for await (const event of stream) {
    events.push(event);
  }
  return events;
}

/** A response without what OpenAI's client adds to it. */
async function polled(client: OpenAI, id: string): Promise<object> {
  const { output_text: _added, ...response } =
    await client.responses.retrieve(id);
  return response;
}

let redis: TestRedis | null = null;
let testbed: ResponsesTestbed;
let provider: TalkingProvider;
let gateway: TestGateway;
let anna: OpenAI;

beforeAll(async () => {
  redis = hasRedisServer() ? await startRedis() : null;
  testbed = await startResponsesTestbed(redis);
  ({ provider, gateway } = testbed);
  anna = await testbed.clientOf({ user_id: "anna" });
});

afterAll(async () => {
  await testbed?.stop();
  await redis?.remove();
});

describe("in background", () => {
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
      expect(gateway.running.gateway.underWay.count()).toBe(0);
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
      const before: Event[] = [];
      for await (const event of stream) {
        before.push(event);
        // Its client leaves; the response goes on.
        if (event.type === "response.output_text.delta") {
          break;
        }
      }
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
    const events: Event[] = [];
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
});

describe.runIf(hasRedisServer())("with a second gateway", () => {
  let other: GatewayProcess;
  let user = 0;

  beforeAll(async () => {
    other = await createGatewayProcess({
      yaml: testbed.yaml,
      databaseUrl: testbed.databaseUrl,
      ...(redis === null ? {} : { redisPort: redis.port }),
    });
    await other.start();
  });

  afterAll(() => other?.remove());

  /** A client of a new user at each gateway. */
  async function clients() {
    const name = `of-both-${++user}`;
    const here = await testbed.clientOf({ user_id: name });
    const there = here.withOptions({ baseURL: `${other.url}/v1` });
    return { name, here, there, key: String(here.apiKey) };
  }

  /** In background at the other gateway, with its provider waiting. */
  async function startWaiting(there: OpenAI): Promise<string> {
    const { id } = await there.responses.create({
      model: "chat",
      input: "wait for ever",
      background: true,
    });
    await vi.waitUntil(() => provider.waiting() > 0, 60_000);
    return id;
  }

  test("both continue, list and delete the same responses and conversations", async () => {
    const { here, there } = await clients();
    const first = await here.responses.create({ model: "chat", input: "One." });
    const second = await there.responses.create({
      model: "native",
      input: "Two.",
      previous_response_id: first.id,
    });
    expect(await here.responses.retrieve(second.id)).toEqual(
      await there.responses.retrieve(second.id),
    );
    await there.responses.delete(second.id);
    expect((await errorOf(here.responses.retrieve(second.id))).status).toBe(
      404,
    );
    const { id } = await there.conversations.create();
    for (const client of [here, there]) {
      await client.responses.create({
        model: "chat",
        input: "Hi",
        conversation: id,
      });
    }
    expect(provider.chats.at(-1)?.["messages"]).toHaveLength(3);
  });

  test("one cancels what runs at the other", async () => {
    const { name, here, there } = await clients();
    const id = await startWaiting(there);
    expect((await here.responses.cancel(id)).status).toBe("cancelled");
    await vi.waitUntil(() => provider.waiting() === 0, 60_000);
    expect(await testbed.rowsOf(name, 1)).toHaveLength(1);
  });

  test("a gateway that is stopped finishes what runs in background", async () => {
    const { name, here, there } = await clients();
    const id = await startWaiting(there);
    const stopped = other.stop();
    await vi.waitUntil(
      () =>
        fetch(other.url).then(
          () => false,
          () => true,
        ),
      60_000,
    );
    provider.release();
    expect(await stopped).toBe(0);
    expect((await here.responses.retrieve(id)).status).toBe("completed");
    expect(await testbed.rowsOf(name, 1)).toHaveLength(1);
    await other.start();
  });

  test("after kill -9, whole answers are there, others have failed, and each is billed once", async () => {
    const { name, here, there } = await clients();
    let whole = "";
    const stream = await there.responses.create({
      model: "native",
      input: "Tell me.",
      stream: true,
    });
    for await (const event of stream) {
      if (event.type === "response.completed") {
        whole = event.response.id;
      }
    }
    const id = await startWaiting(there);
    await other.kill();
    expect((await here.responses.retrieve(whole)).output_text).toBe(
      "You said: Tell me.",
    );
    expect((await here.responses.retrieve(id)).status).toMatch(
      /^(queued|in_progress)$/,
    );
    // Its lease, which nobody extends any more, ends.
    const { pool } = gateway.running.gateway;
    await query(
      pool,
      "UPDATE responses SET runs_until = now() - interval '1 s' WHERE response_id = $1",
      [id],
    );
    const failed = await here.responses.retrieve(id);
    expect(failed.status).toBe("failed");
    expect(failed.error?.message).toContain("stopped before it had ended");
    await other.start();
    const rows = await testbed.rowsOf(name, 2);
    expect(rows.map(({ status }) => status).toSorted()).toEqual([
      "interrupted",
      "success",
    ]);
    expect(rows.every(({ spend }) => spend > 0)).toBe(true);
  });

  test("one follows what is created at the other, also after kill -9", async () => {
    const { here, there } = await clients();
    const start = async () => {
      const stream = await there.responses.create({
        model: "chat",
        input: "wait for it",
        background: true,
        stream: true,
      });
      const events: Event[] = [];
      for await (const event of stream) {
        events.push(event);
        if (event.type === "response.output_text.delta") {
          break;
        }
      }
      const { id } = (events[0] as { response: { id: string } }).response;
      const followed = await here.responses.retrieve(id, {
        stream: true,
        starting_after: numbersOf(events).at(-1) ?? 0,
      });
      return { id, events, followed };
    };
    const whole = await start();
    provider.release();
    const rest = await allOf(whole.followed);
    const all = [...whole.events, ...rest];
    expect(numbersOf(all)).toEqual(all.map((_event, at) => at));
    expect(rest.at(-1)).toMatchObject({
      type: "response.completed",
      response: await polled(here, whole.id),
    });

    const lost = await start();
    await other.kill();
    await query(
      testbed.pool,
      "UPDATE responses SET runs_until = now() - interval '1 s' WHERE response_id = $1",
      [lost.id],
    );
    const end = await allOf(lost.followed);
    expect(numbersOf([...lost.events, ...end])).toEqual(
      [...lost.events, ...end].map((_event, at) => at),
    );
    expect(end.at(-1)).toMatchObject({
      type: "response.failed",
      response: await polled(here, lost.id),
    });
    await other.start();
  });

  test("a gateway that is stopped finishes the turns of its WebSockets, and closes them", async () => {
    const { name, key } = await clients();
    const idle = await SocketClient.connect(other.url, key);
    const busy = await SocketClient.connect(other.url, key);
    busy.send({ model: "chat", input: "wait for ever" });
    busy.send({ model: "chat", input: "not answered any more" });
    await vi.waitUntil(() => provider.waiting() > 0, 60_000);
    const stopped = other.stop();
    expect(await idle.closed).toBe(1012);
    expect(busy.isOpen).toBe(true);
    provider.release();
    expect(JSON.stringify(await busy.until("response.completed"))).toContain(
      "You said: wait for ever",
    );
    expect(await busy.closed).toBe(1012);
    expect(await stopped).toBe(0);
    expect(await testbed.rowsOf(name, 1)).toHaveLength(1);
    await other.start();
  });

  test("after kill -9 in the middle of a session, each of its turns is billed once, and it goes on at the other gateway", async () => {
    const { name, key } = await clients();
    const session = await SocketClient.connect(other.url, key);
    const first = await session.create({ model: "native", input: "One." });
    const { id } = (first.at(-1) as { response: { id: string } }).response;
    session.send({
      model: "chat",
      input: "wait for ever",
      previous_response_id: id,
    });
    await session.until("response.output_text.delta");
    await other.kill();
    expect(await session.closed).toBe(1006);
    const again = await SocketClient.connect(gateway.url, key);
    const last = await again.create({
      model: "chat",
      input: "Two.",
      previous_response_id: id,
    });
    expect(last.at(-1)?.["type"]).toBe("response.completed");
    again.close();
    await other.start();
    const rows = await testbed.rowsOf(name, 3);
    expect(rows.map(({ status }) => status).toSorted()).toEqual([
      "interrupted",
      "success",
      "success",
    ]);
    expect(rows.every(({ spend }) => spend > 0)).toBe(true);
  });
});
