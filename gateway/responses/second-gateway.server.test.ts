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
  allOf,
  errorOf,
  eventsUntilText,
  numbersOf,
  polled,
  startResponsesTestbed,
  type ResponsesTestbed,
} from "./testbed-fixture.ts";

describe.runIf(hasRedisServer())("with a second gateway", () => {
  let redis: TestRedis;
  let testbed: ResponsesTestbed;
  let provider: TalkingProvider;
  let gateway: TestGateway;
  let other: GatewayProcess;
  let user = 0;

  beforeAll(async () => {
    redis = await startRedis();
    testbed = await startResponsesTestbed(redis);
    ({ provider, gateway } = testbed);
    other = await createGatewayProcess({
      yaml: testbed.yaml,
      databaseUrl: testbed.databaseUrl,
      redisPort: redis.port,
    });
    await other.start();
  });

  afterAll(async () => {
    await other?.remove();
    await testbed?.stop();
    await redis?.remove();
  });

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
      const events = await eventsUntilText(stream);
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
