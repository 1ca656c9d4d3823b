import { spawnSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import {
  startHearth,
  type CommandResult,
} from "../supervisor/hearth-command.ts";
import {
  prepareStack,
  pressCtrlC,
  type Stack,
  type StartedStack,
} from "./stack.ts";

let stack: Stack;
let running: StartedStack;
let key: string;

const KEYS = { CUSTOM_API_KEY: "sk-of-the-start" };

beforeAll(async () => {
  stack = await prepareStack();
  running = await stack.start(KEYS);
  await overspend();
  await makeConflict();
});

afterAll(async () => {
  await stack?.remove();
});

async function makeKey(
  fields: Readonly<Record<string, unknown>>,
): Promise<string> {
  const answer = await fetch(`${stack.gatewayUrl}/key/generate`, {
    method: "POST",
    headers: { authorization: `Bearer ${stack.secrets()["masterKey"]}` },
    body: JSON.stringify(fields),
  });
  return ((await answer.json()) as { key: string }).key;
}

/** Runs the CLI for this stack. */
function hearth(
  words: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  return startHearth(words, { ...stack.env, ...more }).ended;
}

function client(apiKey: string): OpenAI {
  return new OpenAI({
    apiKey,
    baseURL: `${stack.gatewayUrl}/v1`,
    maxRetries: 0,
  });
}

function chat(apiKey: string, content: string) {
  return client(apiKey).chat.completions.create({
    model: "hearth-echo",
    messages: [{ role: "user", content }],
  });
}

async function admin(path: string): Promise<Record<string, unknown>> {
  const answer = await fetch(stack.gatewayUrl + path, {
    headers: { authorization: `Bearer ${stack.secrets()["masterKey"]}` },
  });
  return (await answer.json()) as Record<string, unknown>;
}

/** Ids of finished calls in the echo server's log. */
function finishedIds(): readonly string[] {
  const lines = readFileSync(
    join(stack.home, "logs", "echo-calls.jsonl"),
    "utf8",
  )
    .trim()
    .split("\n");
  return lines.map((line) => (JSON.parse(line) as { id: string }).id);
}

async function ledgerIds(): Promise<readonly string[]> {
  const rows = await stack.ledger<{ request_id: string }>(
    "SELECT request_id FROM spend_log",
  );
  return rows.map((row) => row.request_id);
}

/** The state of a process in `ps`; empty when it has ended, Z for a zombie. */
function stateOf(pid: number): string {
  return spawnSync("ps", ["-o", "stat=", "-p", String(pid)], {
    encoding: "utf8",
  }).stdout.trim();
}

async function overspend(): Promise<void> {
  const poor = await makeKey({ key_alias: "poor-key", max_budget: 0.00001 });
  await chat(poor, "a call that costs more than this budget pays for");
}

/** The state after two devices wrote the same note offline. The first vault is created shortly after the start. */
async function makeConflict(): Promise<void> {
  await vi.waitFor(async () => {
    const written = await fetch(`${stack.notesUrl}/notes/_bulk_docs`, {
      method: "POST",
      headers: {
        authorization: `Basic ${btoa(`admin:${stack.secrets()["notesAdminPassword"]}`)}`,
        "content-type": "application/json",
      },
      body: JSON.stringify({
        new_edits: false,
        docs: ["a", "b"].map((device) => ({
          _id: "note.md",
          _rev: `1-${device.repeat(32)}`,
          type: "plain",
          path: "note.md",
          children: [],
          ctime: 1,
          mtime: 2,
          size: 0,
        })),
      }),
    });
    expect(written.status).toBe(201);
  }, 30_000);
}

async function attention(): Promise<readonly string[]> {
  const answer = await fetch(`${stack.supervisorUrl}/api/status`, {
    headers: stack.asOperator(),
  });
  const status = (await answer.json()) as {
    readonly attention: readonly { readonly text: string }[];
  };
  return status.attention.map(({ text }) => text);
}

async function spendOf(userId: string): Promise<number> {
  const info = (await admin(`/user/info?user_id=${userId}`)) as {
    user_info: { spend: number };
  };
  return info.user_info.spend;
}

test("the start prints each service with its address, and the file of the master key", () => {
  const output = running.output();
  for (const name of ["postgres", "notes", "gateway", "echo"]) {
    expect(output).toMatch(new RegExp(`up +${name} +\\d`));
  }
  expect(output).toContain(join(stack.home, "secrets.json"));
  expect(output).not.toContain(stack.secrets()["masterKey"]);
  expect(statSync(join(stack.home, "secrets.json")).mode & 0o777).toBe(0o600);
});

test("the printed commands create a key and chat with it", async () => {
  const printed = (verb: string) => {
    const [, words] =
      new RegExp(`^  npx hearth (${verb} .*)$`, "m").exec(running.output()) ??
      [];
    // As a shell splits them.
    return (words ?? "")
      .match(/"[^"]*"|\S+/g)
      ?.map((word) => word.replaceAll('"', ""));
  };
  const created = await hearth(printed("keys new") ?? []);
  expect(created.out).toMatch(/^sk-/);
  const answer = await hearth(printed("chat") ?? []);
  expect(answer.out).toContain("Echo: Hello, Hearth");
  expect(running.output()).not.toMatch(/\b(sed|curl) /);
});

test("a restart names the variables of the shell that it does not apply", async () => {
  const { code, out, error } = await hearth(["restart", "gateway", "--json"], {
    ANTHROPIC_API_KEY: "sk-ant-of-this-shell",
  });
  expect(code).toBe(0);
  expect(JSON.parse(out)).toMatchObject({ name: "gateway", state: "running" });
  expect(error).toMatch(
    /^hearth: ANTHROPIC_API_KEY is set in this shell, but not in the running Hearth, .* still pending: run `hearth models key ANTHROPIC_API_KEY`, which takes effect at once, or set /,
  );
  expect(error).not.toContain("sk-ant-of-this-shell");
  const { error: replaced } = await hearth(["restart", "gateway"], {
    CUSTOM_API_KEY: "sk-of-this-shell",
  });
  expect(replaced).toMatch(
    /^hearth: CUSTOM_API_KEY of this shell differs from that of the running Hearth, .*: set CUSTOM_API_KEY in the shell that starts Hearth/,
  );
  expect(replaced).not.toContain("sk-of-this-shell");
  expect((await hearth(["restart", "echo"])).error).toBe("");
});

test("the gateway's address leads to its documentation and the console", async () => {
  const answer = await fetch(stack.gatewayUrl);
  expect(await answer.json()).toMatchObject({
    base_url: `${stack.gatewayUrl}/v1`,
    console: stack.supervisorUrl,
    example_model: "hearth-echo",
  });
});

test("the openai client lists models, chats, streams, responds and embeds", async () => {
  key = await makeKey({ user_id: "newcomer" });
  const models = await client(key).models.list();
  expect(models.data.map((model) => model.id)).toContain("hearth-echo");
  expect(models.data.length).toBe(12);
  expect((await chat(key, "good morning")).choices[0]?.message.content).toBe(
    "Echo: good morning",
  );
  const stream = await client(key).chat.completions.create({
    model: "hearth-echo",
    stream: true,
    messages: [{ role: "user", content: "one two three" }],
  });
  let text = "";
  for await (const chunk of stream) {
    text += chunk.choices[0]?.delta.content ?? "";
  }
  expect(text).toBe("Echo: one two three");
  const response = await client(key).responses.create({
    model: "hearth-echo",
    input: "one two",
  });
  expect(response.output_text).toBe("Echo: one two");
  const embedded = await client(key).embeddings.create({
    model: "hearth-echo",
    input: "a text",
  });
  expect(embedded.data[0]?.embedding.length).toBeGreaterThan(0);
});

test("repeated calls are answered from the cache, more than 80 % of a repeated mix", async () => {
  const before = await admin("/cache/ping");
  for (let call = 0; call < 200; call++) {
    await chat(key, `question ${(call * call) % 17}`);
  }
  const after = await admin("/cache/ping");
  const hits = Number(after["hits"]) - Number(before["hits"]);
  const misses = Number(after["misses"]) - Number(before["misses"]);
  expect(hits + misses).toBe(200);
  expect(hits / 200).toBeGreaterThan(0.8);
});

test("a key with a budget of 0.00001 is rejected at its second, different call", async () => {
  const poor = await makeKey({ user_id: "poor", max_budget: 0.00001 });
  await chat(poor, "the first call is longer than the budget pays for");
  await expect(chat(poor, "and another one")).rejects.toMatchObject({
    status: 400,
    type: "budget_exceeded",
    message: expect.stringMatching(
      /Budget has been exceeded! Current cost: [\d.e-]+, Max budget: 0\.00001/,
    ),
  });
});

test("kill -9 of the gateway under 50 parallel calls loses and duplicates no call", async () => {
  const pid = stack.run().services["gateway"]?.pid ?? 0;
  const calls = Array.from({ length: 50 }, (_, at) =>
    chat(key, `[delay ${200 + at * 10}ms] call ${at} of the storm`).catch(
      () => null,
    ),
  );
  await expect
    .poll(() => finishedIds().length, { timeout: 10_000 })
    .toBeGreaterThan(30);
  process.kill(pid, "SIGKILL");
  await Promise.all(calls);
  await expect
    .poll(
      async () =>
        (await fetch(`${stack.gatewayUrl}/health/readiness`).catch(() => null))
          ?.status,
      { timeout: 30_000 },
    )
    .toBe(200);
  expect(stack.run().services["gateway"]?.pid).not.toBe(pid);
  await expect
    .poll(
      async () => {
        const ledger = new Set(await ledgerIds());
        return finishedIds().filter((id) => !ledger.has(id));
      },
      { timeout: 10_000 },
    )
    .toEqual([]);
  const ids = await ledgerIds();
  expect(new Set(ids).size).toBe(ids.length);
  expect(await stack.ledger("SELECT * FROM spend_check")).toEqual([]);
});

test("after kill -9 of the supervisor, the next start adopts the running services", async () => {
  const before = stack.run();
  process.kill(before.supervisor?.pid ?? 0, "SIGKILL");
  await running.exited;
  expect(
    (await chat(key, "still running?")).choices[0]?.message.content,
  ).toContain("still running?");
  running = await stack.start(KEYS);
  const after = stack.run();
  for (const name of ["postgres", "notes", "echo", "gateway"]) {
    expect(after.services[name]?.pid).toBe(before.services[name]?.pid);
  }
  expect(after.supervisor?.pid).not.toBe(before.supervisor?.pid);
});

test("a key over its budget and a note in conflict need attention in the status", async () => {
  // Found by the supervisor that has just started: it checks at its start, and then every minute.
  await expect
    .poll(attention, { timeout: 90_000 })
    .toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^key poor-key is over its budget: /),
        "vault notes has 1 note in conflict",
      ]),
    );
  const status = await fetch(`${stack.supervisorUrl}/`, {
    headers: stack.asOperator(),
  });
  expect(await status.text()).not.toContain("All is well");
});

test("a second start is rejected and changes nothing", async () => {
  const before = stack.run();
  await expect(stack.start(KEYS)).rejects.toThrow(/already|runs/i);
  expect(stack.run()).toEqual(before);
});

test("Ctrl-C stops everything; the next start keeps keys and spend, and drops leftovers of a killed restore", async () => {
  await stack.ledger("CREATE DATABASE hearth_restoring");
  await expect.poll(() => spendOf("newcomer")).toBeGreaterThan(0);
  const spend = await spendOf("newcomer");
  const pids = Object.values(stack.run().services).map(
    (service) => service.pid,
  );
  pressCtrlC(running);
  // npm and the shell end by the signal; they must have waited for the last line.
  await running.exited;
  expect(running.output()).toContain(
    "Hearth stopped; keys, spend and notes are kept.",
  );
  for (const pid of pids) {
    expect(stateOf(pid ?? 0)).toMatch(/^(Z.*)?$/);
  }
  running = await stack.start(KEYS);
  expect(running.output()).toContain("Next: npx hearth status");
  expect(running.output()).not.toContain("1. Create a key");
  expect(await spendOf("newcomer")).toBe(spend);
  expect((await chat(key, "still known")).choices[0]?.message.content).toBe(
    "Echo: still known",
  );
  expect(running.output()).toContain(
    "dropped the database hearth_restoring of an interrupted restore.",
  );
  expect(
    await stack.ledger(
      "SELECT datname FROM pg_database WHERE datname = 'hearth_restoring'",
    ),
  ).toEqual([]);
});

test("the stack stops when its output is closed", async () => {
  const pids = Object.values(stack.run().services).map(({ pid }) => pid ?? 0);
  running.process.stdout?.destroy();
  // Makes the supervisor print a line, which it can no longer write.
  process.kill(stack.run().services["notes"]?.pid ?? 0, "SIGKILL");
  expect(await running.exited).toBe(0);
  for (const pid of pids) {
    expect(stateOf(pid)).toMatch(/^(Z.*)?$/);
  }
  const postgres = readFileSync(
    join(stack.home, "logs", "postgres.log"),
    "utf8",
  );
  expect(postgres.trimEnd()).toMatch(/database system is shut down$/);
});
