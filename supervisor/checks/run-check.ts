import { createConnection } from "node:net";
import { Client } from "pg";
import type { Check } from "../config/schema.ts";
import { inWords } from "../duration.ts";
import { textOf } from "../failure.ts";
import { askHttp } from "./http-get.ts";

export type CheckResult = {
  readonly ok: boolean;
  readonly latencyMs: number;
  /** What was seen, in one line, without secrets. */
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly at: number;
};

type Seen = { readonly ok: boolean; readonly text: string };

/** Looks once. Never throws; a look that hangs past the check's timeout is a failure. */
export async function runCheck(check: Check): Promise<CheckResult> {
  const at = Date.now();
  const begun = performance.now();
  const signal = AbortSignal.timeout(check.timeout);
  const late = new Promise<Seen>((resolve) =>
    signal.addEventListener(
      "abort",
      () =>
        resolve({
          ok: false,
          text: `no answer within ${inWords(check.timeout)}`,
        }),
      { once: true },
    ),
  );
  const seen = await Promise.race([
    look(check, signal).catch((error: unknown) => ({
      ok: false,
      text: textOf(error),
    })),
    late,
  ]);
  return { ...seen, latencyMs: Math.round(performance.now() - begun), at };
}

function look(check: Check, signal: AbortSignal): Promise<Seen> {
  switch (check.kind) {
    case "http":
      return lookAtHttp(check, signal);
    case "tcp":
      return lookAtTcp(check, signal);
    case "postgres":
      return lookAtPostgres(check);
  }
}

async function lookAtHttp(
  check: Extract<Check, { kind: "http" }>,
  signal: AbortSignal,
): Promise<Seen> {
  const begun = performance.now();
  const answer = await askHttp(check.url, { signal });
  const took = performance.now() - begun;
  const { status, within, json } = check.expect;
  if (answer.status !== status)
    return {
      ok: false,
      text: `answered ${answer.status}, expected ${status}${wordsOf(answer.body)}`,
    };
  if (within !== undefined && took > within)
    return {
      ok: false,
      text: `answered after ${inWords(took)}, expected within ${inWords(within)}`,
    };
  const difference =
    json === undefined ? undefined : firstDifference(answer.body, json);
  return difference === undefined
    ? { ok: true, text: `answered ${status}` }
    : { ok: false, text: difference };
}

function wordsOf(body: string): string {
  const words = body.replace(/\s+/g, " ").trim().slice(0, 200);
  return words === "" ? "" : `: ${words}`;
}

function firstDifference(
  body: string,
  expected: Readonly<Record<string, unknown>>,
): string | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(body);
  } catch {
    return "the answer is not JSON";
  }
  const fields = typeof parsed === "object" && parsed !== null ? parsed : {};
  for (const [name, value] of Object.entries(expected)) {
    const got: unknown = Reflect.get(fields, name);
    if (got !== value)
      return `${name} is ${JSON.stringify(got) ?? "missing"}, expected ${JSON.stringify(value)}`;
  }
  return undefined;
}

function lookAtTcp(
  check: Extract<Check, { kind: "tcp" }>,
  signal: AbortSignal,
): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ host: check.host, port: check.port });
    signal.addEventListener("abort", () => socket.destroy(), { once: true });
    socket.once("error", reject);
    socket.once("connect", () => {
      socket.destroy();
      resolve({ ok: true, text: "accepts connections" });
    });
  });
}

const postgresQuestion = `
  SELECT current_setting('max_connections')::int AS allowed,
         (SELECT count(*)::int FROM pg_stat_activity WHERE backend_type = 'client backend') AS used,
         (SELECT coalesce(extract(epoch FROM max(now() - xact_start)), 0)::float8 FROM pg_stat_activity
           WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()) AS oldest_seconds`;

async function lookAtPostgres(
  check: Extract<Check, { kind: "postgres" }>,
): Promise<Seen> {
  const client = new Client({
    connectionString: check.url,
    connectionTimeoutMillis: check.timeout,
    query_timeout: check.timeout,
    application_name: "hearth check",
  });
  client.on("error", () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{
      allowed: number;
      used: number;
      oldest_seconds: number;
    }>(postgresQuestion);
    const row = rows[0];
    if (row === undefined)
      return { ok: false, text: "no answer to the question" };
    const percent = Math.round((100 * row.used) / row.allowed);
    const age = inWords(row.oldest_seconds * 1000);
    const text = `${row.used} of ${row.allowed} connections, oldest transaction ${age}`;
    return percent > check.expect.connections_below_percent
      ? {
          ok: false,
          text: `${text}: over ${check.expect.connections_below_percent} %`,
        }
      : { ok: true, text };
  } finally {
    await client.end().catch(() => {});
  }
}
