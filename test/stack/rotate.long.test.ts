import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { logsIn as postgresLogsIn } from "../servers/postgres-login.ts";
import {
  prepareStack,
  pressCtrlC,
  projectRoot,
  type Stack,
  type StartedStack,
} from "./stack.ts";

let stack: Stack;
let running: StartedStack;
let key: string;
const secrets: string[] = [];

beforeAll(async () => {
  stack = await prepareStack();
  running = await stack.start();
  const answer = await fetch(`${stack.gatewayUrl}/key/generate`, {
    method: "POST",
    headers: { authorization: `Bearer ${stack.secrets()["masterKey"]}` },
    body: JSON.stringify({ max_budget: 100 }),
  });
  ({ key } = (await answer.json()) as { key: string });
});

afterAll(async () => {
  await stack?.remove();
});

/** Runs a command while this process continues calling. */
async function hearth(...words: readonly string[]) {
  const child = spawn(
    process.execPath,
    [join(projectRoot, "cli/main.ts"), ...words],
    { env: { ...process.env, ...stack.env, NO_COLOR: "1" } },
  );
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (text) => (output += String(text)));
  }
  const [code] = (await once(child, "close")) as [number | null];
  return { code, output };
}

/** Calls until stopped, every third call a stream; the stop function asserts that no call failed. */
function callSteadily() {
  const failures: string[] = [];
  const running = new Set<Promise<void>>();
  let calls = 0;
  const call = async (stream: boolean) => {
    try {
      const answer = await fetch(`${stack.gatewayUrl}/v1/chat/completions`, {
        method: "POST",
        headers: {
          authorization: `Bearer ${key}`,
          "content-type": "application/json",
        },
        body: JSON.stringify({
          model: "hearth-echo",
          stream,
          messages: [{ role: "user", content: `call ${calls}` }],
        }),
        signal: AbortSignal.timeout(30_000),
      });
      const text = await answer.text();
      if (answer.status !== 200 || (stream && !text.includes("[DONE]"))) {
        failures.push(`${answer.status} ${text.slice(0, 200)}`);
      }
    } catch (error) {
      failures.push(String(error));
    }
  };
  const timer = setInterval(() => {
    calls += 1;
    const one = call(calls % 3 === 0).finally(() => running.delete(one));
    running.add(one);
  }, 20);
  const stop = async () => {
    clearInterval(timer);
    await Promise.all(running);
    expect(calls).toBeGreaterThan(0);
    expect(failures).toEqual([]);
  };
  return Object.assign(stop, { calls: () => calls });
}

/** Rotates under load with the command; returns the values before and after. */
async function rotated(kind: string, ...names: readonly string[]) {
  const before = names.map((name) => stack.secrets()[name] ?? "");
  const stop = callSteadily();
  const { code, output } = await hearth("rotate", kind);
  await stop();
  expect(code, output).toBe(0);
  const after = names.map((name) => stack.secrets()[name] ?? "");
  secrets.push(...before, ...after);
  for (const secret of [...before, ...after]) {
    expect(output).not.toContain(secret);
  }
  return before.map((old, index) => ({ old, now: after[index] ?? "" }));
}

async function keyAnswer(masterKey = ""): Promise<number> {
  const answer = await fetch(`${stack.gatewayUrl}/key/list`, {
    headers: { authorization: `Bearer ${masterKey}` },
  });
  await answer.text();
  return answer.status;
}

test("master key: old and new are valid, also after a restart of the stack, until --end revokes the old one", async () => {
  const [pair] = await rotated("master", "masterKey");
  expect(await keyAnswer(pair?.old)).toBe(200);
  pressCtrlC(running);
  await running.exited;
  running = await stack.start();
  expect(await keyAnswer(pair?.old)).toBe(200);
  expect(await keyAnswer(pair?.now)).toBe(200);
  const { code, output } = await hearth("rotate", "master", "--end");
  expect(code, output).toBe(0);
  expect(await keyAnswer(pair?.old)).toBe(401);
  expect(await keyAnswer(pair?.now)).toBe(200);
});

function logsIn(user: string, password = ""): Promise<boolean> {
  const port = stack.run().services["postgres"]?.port ?? 0;
  return postgresLogsIn({ host: "127.0.0.1", port, user, password });
}

test("Postgres: the gateway switches roles, old passwords are rejected, and the supervisor's check stays up; twice", async () => {
  for (const [role, other] of [
    ["gateway_a", "gateway_b"],
    ["gateway_b", "gateway_a"],
  ] as const) {
    const [gateway, supervisor, backup, superuser] = await rotated(
      "postgres",
      "gatewayDbPassword",
      "supervisorDbPassword",
      "backupDbPassword",
      "postgresPassword",
    );
    expect(await logsIn(role, gateway?.old)).toBe(false);
    expect(await logsIn(other, gateway?.now)).toBe(true);
    for (const [user, pair] of [
      ["supervisor", supervisor],
      ["backup", backup],
      ["postgres", superuser],
    ] as const) {
      expect(await logsIn(user, pair?.old), `${user}, old`).toBe(false);
      expect(await logsIn(user, pair?.now), `${user}, new`).toBe(true);
    }
  }
  const { output } = await hearth("check", "postgres");
  expect(output).toContain("postgres  ● up");
});

async function notesAnswer(password = ""): Promise<number> {
  const answer = await fetch(`${stack.notesUrl}/_all_dbs`, {
    headers: {
      authorization: `Basic ${Buffer.from(`admin:${password}`).toString("base64")}`,
    },
  });
  await answer.text();
  return answer.status;
}

test("the notes admin's old password is rejected", async () => {
  const [pair] = await rotated("notes", "notesAdminPassword");
  expect(await notesAnswer(pair?.old)).toBe(401);
  expect(await notesAnswer(pair?.now)).toBe(200);
});

test("the new secrets are valid after a restart of every service", async () => {
  for (const service of ["gateway", "notes", "postgres"]) {
    const { code, output } = await hearth("restart", service);
    expect(code, output).toBe(0);
  }
  await expect
    .poll(() => keyAnswer(stack.secrets()["masterKey"]), { timeout: 60_000 })
    .toBe(200);
  expect(await notesAnswer(stack.secrets()["notesAdminPassword"])).toBe(200);
  const stop = callSteadily();
  await expect
    .poll(() => stop.calls(), { timeout: 10_000 })
    .toBeGreaterThan(20);
  await stop();
});

test("an unsupported secret is rejected with the supported ones", async () => {
  const { code, output } = await hearth("rotate", "redis");
  expect(code).toBe(2);
  expect(output).toBe(
    'hearth: "redis" cannot be rotated; choose one of master, postgres, notes. On two hosts: npm run deploy -- rotate.\n',
  );
});

test("no log contains an old or new secret", () => {
  const logs = join(stack.home, "logs");
  const text = readdirSync(logs)
    .map((name) => readFileSync(join(logs, name), "utf8"))
    .join("\n");
  expect(text.length).toBeGreaterThan(0);
  for (const secret of secrets) {
    expect(text).not.toContain(secret);
  }
});
