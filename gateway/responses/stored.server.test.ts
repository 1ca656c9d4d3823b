import type OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { TestGateway } from "../../test/servers/gateway.ts";
import { query } from "../database/pool.ts";
import { dropExpiredResponses } from "../database/retention.ts";
import { USAGE, type TalkingProvider } from "./provider-fixture.ts";
import {
  errorOf,
  PRICE,
  startResponsesTestbed,
  text,
  type ResponsesTestbed,
} from "./testbed-fixture.ts";

let testbed: ResponsesTestbed;
let provider: TalkingProvider;
let gateway: TestGateway;
let anna: OpenAI;
let annasOther: OpenAI;
let ben: OpenAI;

beforeAll(async () => {
  testbed = await startResponsesTestbed();
  ({ provider, gateway } = testbed);
  anna = await testbed.clientOf({ user_id: "anna" });
  annasOther = await testbed.clientOf({ user_id: "anna" });
  ben = await testbed.clientOf({ user_id: "ben" });
});

afterAll(() => testbed?.stop());

test("a conversation is continued by chat, and by another model through the Responses API", async () => {
  const first = await anna.responses.create({
    model: "chat",
    input: "I am Anna.",
    instructions: "Be kind.",
    metadata: { topic: "names" },
  });
  expect(first.id).toMatch(/^resp_[0-9a-f]{32}$/);
  expect(first).toMatchObject({
    store: true,
    previous_response_id: null,
    output_text: "You said: I am Anna.",
  });
  const second = await anna.responses
    .stream({
      model: "chat",
      input: [text("user", "Who am I?")] as never,
      previous_response_id: first.id,
    })
    .finalResponse();
  expect(second).toMatchObject({
    previous_response_id: first.id,
    output_text: "You said: Who am I?",
  });
  // Instructions apply to one call.
  expect(provider.chats.at(-1)?.["messages"]).toEqual([
    text("user", "I am Anna."),
    text("assistant", "You said: I am Anna."),
    text("user", "Who am I?"),
  ]);
  const third = await anna.responses.create({
    model: "native",
    input: "And now?",
    previous_response_id: second.id,
  });
  expect(third.previous_response_id).toBe(second.id);
  const sent = provider.responses.at(-1);
  expect(sent).toMatchObject({ store: false, model: "m-native" });
  expect(sent).not.toHaveProperty("previous_response_id");
  expect(
    (sent?.["input"] as { role: string; content: unknown }[]).map(
      ({ role }) => role,
    ),
  ).toEqual(["user", "assistant", "user", "assistant", "user"]);

  const stored = await anna.responses.retrieve(third.id);
  expect(stored.output_text).toBe("You said: And now?");
  expect(stored.id).toBe(third.id);
  const items = [];
  for await (const item of anna.responses.inputItems.list(third.id, {
    order: "asc",
    limit: 2,
  })) {
    items.push(item);
  }
  expect(items.map((item) => ("role" in item ? item.role : ""))).toEqual([
    "user",
    "assistant",
    "user",
    "assistant",
    "user",
  ]);
  expect(items.every(({ id }) => typeof id === "string")).toBe(true);
});

test("reasoning goes back to the deployment that it came from, and to no other", async () => {
  const first = await anna.responses.create({
    model: "native",
    input: "Think.",
  });
  const at = provider.responses.length;
  const reasoning = {
    type: "reasoning",
    encrypted_content: `secret thoughts ${at}`,
  };
  const next = { input: "More.", previous_response_id: first.id };
  await anna.responses.create({ ...next, model: "native" });
  expect(provider.responses.at(-1)?.["input"]).toContainEqual(
    expect.objectContaining(reasoning),
  );
  for (const model of ["native-too", "chat"]) {
    await anna.responses.create({ ...next, model });
  }
  expect(JSON.stringify(provider.responses.at(-1))).not.toContain("secret");
  expect(JSON.stringify(provider.chats.at(-1))).not.toContain("secret");
  expect(provider.chats.at(-1)?.["messages"]).toHaveLength(3);
});

test("a conversation stays where its first response was answered, whichever key continues it", async () => {
  const conversation = async (at: number) => {
    const from = provider.responses.length;
    let previous: string | null = null;
    for (const client of [anna, annasOther, anna, annasOther]) {
      const response: OpenAI.Responses.Response = await client.responses.create(
        {
          model: "pair",
          input: `Conversation ${at}`,
          previous_response_id: previous,
        },
      );
      previous = response.id;
    }
    const models = provider.responses.slice(from).map(({ model }) => model);
    expect(models).toHaveLength(4);
    expect(new Set(models).size).toBe(1);
    return models[0];
  };
  const used = new Set<unknown>();
  for (let at = 0; at < 16; at++) {
    used.add(await conversation(at));
  }
  expect(used.size).toBe(2);
});

test("built-in tools are passed to a provider that has them; elsewhere the error names tool and model", async () => {
  const tools = [
    { type: "web_search" as const },
    { type: "code_interpreter" as const, container: { type: "auto" as const } },
  ];
  await anna.responses.create({ model: "native", input: "Search.", tools });
  expect(provider.responses.at(-1)?.["tools"]).toEqual(tools);
  const error = await errorOf(
    anna.responses.create({ model: "chat", input: "Search.", tools }),
  );
  expect(error.status).toBe(400);
  expect(error.message).toContain(
    "The provider of chat (openai) does not support `tools[0] (web_search)`, `tools[1] (code_interpreter)`",
  );
});

test("what a guardrail masks is not stored", async () => {
  const secret = `ghp_${"a1B2".repeat(9)}`;
  const call = {
    model: "chat",
    input: `My token is ${secret}.`,
    guardrails: ["secrets"],
  };
  const { id } = await anna.responses.create(call);
  expect(JSON.stringify(provider.chats.at(-1))).not.toContain(secret);
  const { data } = await anna.responses.inputItems.list(id);
  expect(JSON.stringify(data)).toContain("My token is");
  expect(JSON.stringify(data)).not.toContain(secret);
});

test("nothing readable is in the database, and nothing at all with store: false", async () => {
  const said = "a very particular sentence";
  await anna.responses.create({ model: "native", input: said });
  const rows = () =>
    query<{ row: string }>(
      gateway.running.gateway.pool,
      "SELECT r::text AS row FROM responses r UNION ALL SELECT i::text FROM conversation_items i",
    );
  const before = await rows();
  expect(before.length).toBeGreaterThan(0);
  expect(before.filter(({ row }) => row.includes("particular"))).toEqual([]);
  const unstored = await anna.responses.create({
    model: "chat",
    input: said,
    store: false,
  });
  expect(unstored).toMatchObject({ store: false });
  expect(await rows()).toHaveLength(before.length);
  expect((await errorOf(anna.responses.retrieve(unstored.id))).status).toBe(
    404,
  );
});

test("a response is its user's, by any key, and nobody else's", async () => {
  const { id } = await anna.responses.create({ model: "chat", input: "Mine." });
  expect((await annasOther.responses.retrieve(id)).id).toBe(id);
  const team = await gateway.request("POST", "/team/new", { team_id: "t" });
  expect(team.status).toBe(200);
  await gateway.request("POST", "/team/member_add", {
    team_id: "t",
    member: { user_id: "anna", role: "user" },
  });
  const strangers = [
    ben,
    await testbed.clientOf({}),
    await testbed.clientOf({ user_id: "anna", team_id: "t" }),
  ];
  for (const client of strangers) {
    for (const call of [
      () => client.responses.retrieve(id),
      () => client.responses.delete(id),
      () => client.responses.cancel(id),
      () => client.responses.inputItems.list(id),
      () =>
        client.responses.create({
          model: "chat",
          input: "What did she say?",
          previous_response_id: id,
        }),
    ]) {
      const error = await errorOf(Promise.resolve(call()));
      expect(error.status).toBe(404);
      expect(error.message).toContain(`No response ${id}`);
    }
  }
  const master = await gateway.request("GET", `/v1/responses/${id}`);
  expect(master.status).toBe(404);
  expect((await anna.responses.retrieve(id)).id).toBe(id);
});

test("what is unknown, deleted or expired is answered with one sentence", async () => {
  const create = (previous: string) =>
    anna.responses.create({
      model: "chat",
      input: "Go on.",
      previous_response_id: previous,
    });
  const unknown = await errorOf(create("resp_68af\0-unknown"));
  expect(unknown).toMatchObject({ status: 404, param: "previous_response_id" });
  const first = await anna.responses.create({ model: "chat", input: "One." });
  const second = await create(first.id);
  await anna.responses.delete(first.id);
  expect((await errorOf(anna.responses.retrieve(first.id))).status).toBe(404);
  expect((await errorOf(create(second.id))).message).toContain(
    `${first.id}, which it continues, was deleted`,
  );

  const root = await anna.responses.create({ model: "chat", input: "Root." });
  const child = await create(root.id);
  const { pool } = gateway.running.gateway;
  const expire = (id: string) =>
    query(
      pool,
      "UPDATE responses SET expires_at = now() - interval '1 s' WHERE response_id = $1",
      [id],
    );
  const known = async () =>
    (
      await query<{ response_id: string }>(
        pool,
        "SELECT response_id FROM responses",
      )
    ).map(({ response_id }) => response_id);
  await expire(root.id);
  await dropExpiredResponses(pool, Date.now());
  expect((await errorOf(anna.responses.retrieve(root.id))).status).toBe(404);
  // What still continues it needs it.
  const grandchild = await create(child.id);
  expect(provider.chats.at(-1)?.["messages"]).toHaveLength(5);
  await expire(child.id);
  await expire(grandchild.id);
  await dropExpiredResponses(pool, Date.now());
  const ids = await known();
  expect(ids).not.toContain(root.id);
  expect(ids).not.toContain(child.id);
  expect(ids).toContain(second.id);
});

test("a conversation collects the items of its calls", async () => {
  const conversation = await anna.conversations.create({
    items: [{ type: "message", role: "user", content: "My name is Anna." }],
    metadata: { topic: "names" },
  });
  for (const [model, input] of [
    ["chat", "Hello"],
    ["native", "Hello again"],
  ] as const) {
    const response = await anna.responses.create({
      model,
      input,
      conversation: conversation.id,
    });
    expect(response.conversation).toEqual({ id: conversation.id });
    const refused = await errorOf(
      anna.responses.create({
        model,
        input,
        previous_response_id: response.id,
      }),
    );
    expect(refused.message).toContain("send `conversation` instead");
  }
  await anna.responses.create({
    model: "chat",
    input: "Who am I?",
    conversation: { id: conversation.id },
  });
  expect(provider.chats.at(-1)?.["messages"]).toEqual([
    text("user", "My name is Anna."),
    text("user", "Hello"),
    text("assistant", "You said: Hello"),
    text("user", "Hello again"),
    text("assistant", "You said: Hello again"),
    text("user", "Who am I?"),
  ]);
  const items = [];
  for await (const item of anna.conversations.items.list(conversation.id, {
    order: "asc",
    limit: 3,
  })) {
    items.push(item);
  }
  expect(items.map(({ type }) => type)).toEqual([
    "message",
    "message",
    "message",
    "message",
    "reasoning",
    "message",
    "message",
    "message",
  ]);
  const [first] = items;
  const named = { conversation_id: conversation.id };
  const id = String(first?.id);
  expect(await anna.conversations.items.retrieve(id, named)).toEqual(first);
  await anna.conversations.items.delete(id, named);
  expect(
    (await errorOf(anna.conversations.items.retrieve(id, named))).status,
  ).toBe(404);
  const updated = await anna.conversations.update(conversation.id, {
    metadata: { topic: "other" },
  });
  expect(updated.metadata).toEqual({ topic: "other" });
  expect(await anna.conversations.retrieve(conversation.id)).toEqual(updated);
  for (const call of [
    () => ben.conversations.retrieve(conversation.id),
    () => ben.conversations.items.list(conversation.id),
    () => ben.conversations.delete(conversation.id),
    () =>
      ben.responses.create({
        model: "chat",
        input: "Hi",
        conversation: conversation.id,
      }),
  ]) {
    expect((await errorOf(Promise.resolve(call()))).status).toBe(404);
  }
  await anna.conversations.delete(conversation.id);
  expect(
    (await errorOf(anna.conversations.retrieve(conversation.id))).status,
  ).toBe(404);
  const left = await query(
    gateway.running.gateway.pool,
    "SELECT 1 FROM conversation_items WHERE conversation_id = $1",
    [conversation.id],
  );
  expect(left).toEqual([]);
});

test("a conversation is compacted to a summary, which any model reads and no other user", async () => {
  const first = await anna.responses.create({ model: "chat", input: "One." });
  const second = await anna.responses.create({
    model: "native",
    input: "Two.",
    previous_response_id: first.id,
  });
  const compacted = await anna.responses.compact({
    model: "chat",
    previous_response_id: second.id,
  });
  const asked = provider.chats.at(-1)?.["messages"] as { content: string }[];
  expect(asked).toHaveLength(5);
  expect(asked.at(-1)?.content).toContain("Summarise our conversation");
  expect(compacted).toMatchObject({
    object: "response.compaction",
    usage: { input_tokens: USAGE.input, output_tokens: USAGE.output },
  });
  expect(compacted.output.map(({ type }) => type)).toEqual([
    "message",
    "message",
    "compaction",
  ]);
  expect(JSON.stringify(compacted)).not.toContain("Summarise");
  const input = [
    ...(compacted.output as OpenAI.Responses.ResponseInputItem[]),
    { role: "user" as const, content: "Three." },
  ];
  await anna.responses.create({ model: "chat", input });
  const [one, two, summary, three] = provider.chats.at(-1)?.["messages"] as {
    content: string;
  }[];
  expect([one, two, three]).toEqual([
    text("user", "One."),
    text("user", "Two."),
    text("user", "Three."),
  ]);
  expect(summary?.content).toMatch(
    /^Summary of our conversation so far:\n\nYou said: Summarise/,
  );
  const strange = await errorOf(ben.responses.create({ model: "chat", input }));
  expect(strange).toMatchObject({ status: 400, param: "input[2]" });
  const empty = await errorOf(anna.responses.compact({ model: "chat" }));
  expect(empty).toMatchObject({ status: 400, param: "input" });
});

test("an item is named by its id instead of being sent again", async () => {
  const first = await anna.responses.create({ model: "native", input: "Hi." });
  const message = first.output.find(({ type }) => type === "message");
  const reference = {
    type: "item_reference" as const,
    id: String(message?.id),
  };
  const input = [
    { role: "user" as const, content: "Hi." },
    reference,
    { role: "user" as const, content: "Again." },
  ];
  await anna.responses.create({ model: "chat", input });
  expect(provider.chats.at(-1)?.["messages"]).toEqual([
    text("user", "Hi."),
    text("assistant", "You said: Hi."),
    text("user", "Again."),
  ]);
  const unknown = await errorOf(ben.responses.create({ model: "chat", input }));
  expect(unknown).toMatchObject({ status: 404, param: "input[1]" });
});

test("an item that is named many times counts each time", async () => {
  const long = { role: "user" as const, content: "x".repeat(1024 * 1024) };
  const first = await anna.responses.create({ model: "chat", input: [long] });
  const { data } = await anna.responses.inputItems.list(first.id);
  const reference = {
    type: "item_reference" as const,
    id: String(data[0]?.id),
  };
  const input = Array.from({ length: 33 }, () => reference);
  const tooLong = await errorOf(
    anna.responses.create({ model: "chat", input }),
  );
  expect(tooLong).toMatchObject({ status: 400, param: "input" });
});

test("a call is answered while its response cannot be stored, and says so", async () => {
  const { pool } = gateway.running.gateway;
  await query(pool, "ALTER TABLE responses RENAME TO responses_away");
  try {
    const call = { model: "chat", input: "Hello" };
    expect(await anna.responses.create(call)).toMatchObject({ store: false });
    const streamed = await anna.responses.stream(call).finalResponse();
    expect(streamed).toMatchObject({
      store: false,
      status: "completed",
      output_text: "You said: Hello",
    });
  } finally {
    await query(pool, "ALTER TABLE responses_away RENAME TO responses");
  }
});

test("the ledger has each call once, at its price, whatever it continues", async () => {
  const fresh = await testbed.clientOf({ user_id: "counted" });
  const first = await fresh.responses.create({ model: "chat", input: "One." });
  await fresh.responses
    .stream({ model: "native", input: "Two.", previous_response_id: first.id })
    .finalResponse();
  const rows = await testbed.rowsOf("counted", 2);
  expect(rows).toHaveLength(2);
  for (const row of rows) {
    expect(row.status).toBe("success");
    expect(row.spend).toBeCloseTo(PRICE, 12);
  }
});

test("the tokens of an input are counted with what it continues, without a call", async () => {
  const fresh = await testbed.clientOf({ user_id: "counting" });
  const first = await fresh.responses.create({ model: "chat", input: "One." });
  const calls = provider.chats.length;
  const count = async (fields: object = {}) =>
    (
      await fresh.responses.inputTokens.count({
        model: "chat",
        input: "Two words.",
        ...fields,
      })
    ).input_tokens;
  const alone = await count();
  expect(alone).toBeGreaterThan(0);
  const continued = await count({ previous_response_id: first.id });
  expect(continued).toBeGreaterThan(alone);
  expect(await count({ instructions: "Be kind." })).toBeGreaterThan(alone);
  const ofOther = ben.responses.inputTokens.count({
    model: "chat",
    input: "Hi",
    previous_response_id: first.id,
  });
  expect(await errorOf(ofOther)).toMatchObject({ status: 404 });
  expect(provider.chats).toHaveLength(calls);
  expect(await testbed.rowsOf("counting", 1)).toHaveLength(1);
});
