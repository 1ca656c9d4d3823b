// Measures the response times and sizes of the pages: npm run bench:pages -- --rows 1000000 --keys 10000
import { availableParallelism, loadavg } from "node:os";
import { pino } from "pino";
import { createPool } from "../../gateway/database/pool.ts";
import { statsOf } from "../../supervisor/runtimes/process/stats.ts";
import { prepareStack, type Stack } from "../stack/stack.ts";
import { generateLedger, type LedgerSize } from "./ledger-rows.ts";
import { readLedgerOptions } from "./ledger-options.ts";
import { withCleanup } from "./cleanup.ts";

interface Server {
  readonly url: string;
  readonly pid: number;
}

interface Page {
  readonly server: Server;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
}

interface Timing {
  readonly path: string;
  /** First request after the start, without warm caches, in ms. */
  readonly first: number;
  readonly p50: number;
  readonly p99: number;
  /** CPU time of the server per request in ms, which is independent of other programs on the machine. */
  readonly cpu: number;
  readonly bytes: number;
  /** p50 of /healthz of the same server, in requests that alternate with those of the page. */
  readonly floor: number;
}

const GOAL_MS = 100;
const GOAL_BYTES = 150_000;

const { size, rounds } = readLedgerOptions("bench:pages", {
  keys: 10_000,
  rounds: 200,
  subject: "page",
});

process.exitCode = await withCleanup(async (cleanup) => {
  const stack = await cleanup.keep(prepareStack(), (started) =>
    started.remove(),
  );
  log("starting the whole stack, as `npm start` does");
  await stack.start();
  await fill(stack, size);
  const timings: Timing[] = [];
  for (const page of await pagesOf(stack)) {
    const timing = await measure(page, rounds);
    if (timing !== null) {
      timings.push(timing);
    }
  }
  report(size, timings);
  return timings.every(meetsGoals) ? 0 : 1;
});

/** Fills the stack's Postgres with keys, users, teams and a ledger. */
async function fill(stack: Stack, size: LedgerSize): Promise<void> {
  const port = stack.run().services["postgres"]?.port ?? 0;
  const password = stack.secrets()["gatewayDbPassword"] ?? "";
  const pool = createPool(
    `postgres://gateway_a:${password}@127.0.0.1:${port}/hearth`,
    2,
    pino({ level: "silent" }),
  );
  try {
    await generateLedger(pool, size, log);
  } finally {
    await pool.end();
  }
}

/** All pages of the navigation, their subpages, and those for key holders. */
async function pagesOf(stack: Stack): Promise<readonly Page[]> {
  const { supervisorUrl, gatewayUrl } = stack;
  const { supervisor, services } = stack.run();
  const console = { url: supervisorUrl, pid: supervisor?.pid ?? 0 };
  const gateway = { url: gatewayUrl, pid: services["gateway"]?.pid ?? 0 };
  const headers = stack.asOperator();
  const home = await (await fetch(supervisorUrl, { headers })).text();
  const nav = /<nav aria-label="Pages">(.*?)<\/nav>/s.exec(home)?.[1] ?? "";
  const links = [...nav.matchAll(/href="([^"]+)"/g)].map(([, path]) => path);
  const [{ token } = { token: "" }] = await stack.ledger<{ token: string }>(
    "SELECT token FROM keys WHERE key_alias = 'bench-7'",
  );
  const behind = [
    "/services/gateway",
    "/services/gateway?span=month",
    "/spend?by=key",
    `/spend?by=key&pick=${token}`,
    "/spend?by=user&period=last-month",
    "/spend?by=day&find=nov",
    ...callPages(token),
    `/keys/${token}`,
    "/models",
    "/models/model?id=model-1&span=month",
    "/search?q=bench-7",
    "/users",
    "/teams",
    "/audit",
    "/invitations",
    "/playground",
    "/jobs/retention",
  ];
  const created = await fetch(`${gatewayUrl}/key/generate`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${stack.secrets()["masterKey"]}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ user_id: "user-1" }),
  });
  const { key } = (await created.json()) as { readonly key: string };
  return [
    ...[...links, ...behind].flatMap((path) =>
      path === undefined ? [] : [{ server: console, path, headers }],
    ),
    { server: gateway, path: "/me" },
    {
      server: gateway,
      path: "/me/usage",
      headers: { authorization: `Bearer ${key}` },
    },
  ];
}

/** The calls of each filter, of rare and of frequent combinations, and the page of one call. */
function callPages(token: string): readonly string[] {
  return [
    "",
    "?status=failure",
    "?status=interrupted",
    `?key=${token}`,
    "?key=bench-7",
    "?user=user-7",
    "?team=team-7",
    "?model=model-3",
    "?provider=provider-1",
    "?cost=0.009",
    "?cost=0.2",
    "?latency=0.9",
    "?latency=60",
    "?tag=tag-4",
    "?error=overloaded",
    `?key=${token}&status=failure&model=model-7`,
    "?user=user-7&tag=tag-4&cost=0.0099",
    "?team=team-7&status=failure&provider=provider-2",
    "?model=model-3&provider=provider-2",
    "?tag=tag-4&model=model-1&cost=0.0099&latency=0.5",
    "?model=model-3&from=2026-01-01&cost=0.00999999",
    "/call-00000000abcd",
  ].map((rest) => `/spend/calls${rest}`);
}

/** Requests a page repeatedly, each time after its server's /healthz; null if the page does not exist. */
async function measure(page: Page, rounds: number): Promise<Timing | null> {
  log(page.path);
  const first = await ask(page);
  if (first.status === 404) {
    return null;
  }
  const floors: number[] = [];
  const times: number[] = [];
  let bytes = first.bytes;
  const before = cpuOf(page.server);
  for (let round = 0; round < rounds; round += 1) {
    floors.push((await ask({ ...page, path: "/healthz" })).ms);
    const answer = await ask(page);
    if (answer.status !== 200) {
      throw new Error(`${page.path} returned ${answer.status}`);
    }
    times.push(answer.ms);
    bytes = Math.max(bytes, answer.bytes);
  }
  return {
    path: page.path,
    first: first.ms,
    bytes,
    cpu: (1000 * (cpuOf(page.server) - before)) / rounds,
    p50: at(times, 0.5),
    p99: at(times, 0.99),
    floor: at(floors, 0.5),
  };
}

async function ask({ server, path, headers }: Page): Promise<{
  readonly status: number;
  readonly ms: number;
  readonly bytes: number;
}> {
  const before = performance.now();
  const answer = await fetch(server.url + path, {
    headers: { accept: "text/html", ...headers },
  });
  const { byteLength } = await answer.arrayBuffer();
  return {
    status: answer.status,
    ms: performance.now() - before,
    bytes: byteLength,
  };
}

/** CPU seconds since the start of the process. */
function cpuOf({ pid }: Server): number {
  return statsOf(pid)?.cpuSeconds ?? 0;
}

function at(times: readonly number[], share: number): number {
  const sorted = times.toSorted((one, other) => one - other);
  const place = Math.min(sorted.length - 1, Math.floor(sorted.length * share));
  return sorted[place] ?? 0;
}

function meetsGoals({ p99, bytes }: Timing): boolean {
  return p99 < GOAL_MS && bytes < GOAL_BYTES;
}

function report(
  { rows, keys, days }: LedgerSize,
  timings: readonly Timing[],
): void {
  const lines = timings.map((timing) => {
    const { path, first, p50, p99, cpu, bytes, floor } = timing;
    const cells = [
      first.toFixed(0).padStart(8),
      p50.toFixed(1).padStart(8),
      p99.toFixed(1).padStart(8),
      cpu.toFixed(1).padStart(8),
      (bytes / 1000).toFixed(0).padStart(5),
      (p50 / floor).toFixed(1).padStart(9),
      meetsGoals(timing) ? "yes " : "NO  ",
    ];
    return `${cells.join("  ")}  ${path.replace(/[0-9a-f]{64}/, "…")}\n`;
  });
  process.stdout.write(
    `${rows.toLocaleString("en")} rows of ${keys.toLocaleString("en")} keys over ${days} days; goals: p99 below ${GOAL_MS} ms, below ${GOAL_BYTES / 1000} kB; load of the machine ${loadavg()[0]?.toFixed(1)} on ${availableParallelism()} cores\n\n` +
      `first ms    p50 ms    p99 ms    CPU ms     kB  ×/healthz  met   page\n${lines.join("")}`,
  );
}

function log(step: string): void {
  process.stderr.write(
    `${(performance.now() / 1000).toFixed(1).padStart(7)} s  ${step}\n`,
  );
}
