// Measures the cost of a supervisor with 50 checks: npm run bench:supervisor -- --seconds 120
import { spawn, type ChildProcess } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { operatorHeaders } from "../../supervisor/credentials.ts";
import { statsOf } from "../../supervisor/runtimes/process/stats.ts";
import { startPostgres } from "../servers/postgres.ts";
import { hasRedisServer, startRedis } from "../servers/redis.ts";
import { createCleanup } from "./cleanup.ts";
import {
  numberOf,
  readCommandLine,
  wholeNumberOf,
} from "../../scripts/command-line.ts";
import { projectRoot } from "../../supervisor/home/home.ts";
import { SMALL_MEMORY } from "../../supervisor/node-options.ts";
import { freePort, listen } from "../servers/ports.ts";

const USAGE = `Usage: npm run bench:supervisor -- [options]
  --seconds N   measured time (120)
  --checks N    number of checks (50)
`;
const OPTIONS = {
  seconds: { type: "string", default: "120" },
  checks: { type: "string", default: "50" },
} as const;
const options = readCommandLine(USAGE, OPTIONS, ({ seconds, checks }) => ({
  seconds: numberOf("seconds", seconds),
  checks: wholeNumberOf("checks", checks),
}));
const OPERATOR_PASSWORD = "of-the-benchmark";
/** Until every check has run and all modules are loaded. */
const SETTLE_MS = 45_000;
const cleanup = createCleanup();

try {
  process.exitCode = await measure(options.seconds, options.checks);
} finally {
  await cleanup.run();
}

async function measure(seconds: number, count: number): Promise<0 | 1> {
  const checks = await createChecks(count);
  const home = mkdtempSync(join(tmpdir(), "hearth-bench-supervisor-"));
  await cleanup.keep(home, (path) =>
    rmSync(path, { recursive: true, force: true }),
  );
  const config = join(home, "checks.yaml");
  writeFileSync(config, JSON.stringify({ checks }));
  const port = await freePort();
  // Not measured: the first start of a version compiles its sources, and later ones reuse the compiled code.
  const first = await startSupervisor(home, config, port);
  await stopSupervisor(first);
  const supervisor = await cleanup.keep(
    startSupervisor(home, config, port),
    stopSupervisor,
  );
  await sleep(SETTLE_MS);
  const before = statsOf(supervisor.pid ?? 0);
  if (before === undefined) {
    throw new Error("the supervisor has ended");
  }
  await sleep(seconds * 1000);
  const after = statsOf(supervisor.pid ?? 0);
  if (after === undefined) {
    throw new Error("the supervisor has ended");
  }
  const core = (100 * (after.cpuSeconds - before.cpuSeconds)) / seconds;
  const memory = memoryOf(supervisor.pid ?? 0) ?? {
    residentBytes: after.memoryBytes,
    shareBytes: after.memoryBytes,
  };
  const unhealthy = await unhealthyChecks(port);
  report("checks, each every 30 s", `${checks.length} (${kindsOf(checks)})`);
  report("share of a core", `${core.toFixed(2)} %, limit 1 %`);
  report("memory", `${mb(memory.shareBytes)} MB, limit 100 MB`);
  report(
    "  including shared memory",
    `${mb(memory.residentBytes)} MB (Node's executable is shared by all its processes)`,
  );
  if (unhealthy.length > 0) {
    report("not up", unhealthy.join(", "));
  }
  return core < 1 && memory.shareBytes < 100_000_000 && unhealthy.length === 0
    ? 0
    : 1;
}

async function startSupervisor(
  home: string,
  config: string,
  port: number,
): Promise<ChildProcess> {
  const child = spawn(
    process.execPath,
    [...SMALL_MEMORY, join(projectRoot, "supervisor", "main.ts")],
    {
      stdio: ["ignore", "ignore", "inherit"],
      env: {
        ...process.env,
        HEARTH_HOME: home,
        HEARTH_RUNTIME: "none",
        HEARTH_SUPERVISOR_CONFIG: config,
        HEARTH_SUPERVISOR_PORT: String(port),
        HEARTH_OPERATOR_PASSWORD: OPERATOR_PASSWORD,
        NODE_COMPILE_CACHE: join(home, "cache"),
      },
    },
  );
  while (child.exitCode === null) {
    const up = await fetch(`http://127.0.0.1:${port}/healthz`).catch(
      () => null,
    );
    if (up?.ok === true) {
      return child;
    }
    await sleep(100);
  }
  throw new Error("the supervisor ended during its start");
}

async function stopSupervisor(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  await ended;
}

/** Creates checks of all kinds that need no container, with the servers that they check. */
async function createChecks(
  count: number,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const site = createServer((_request, response) =>
    response.end('{"status":"ok"}'),
  );
  const port = await listen(site);
  await cleanup.keep(site, (server) => {
    server.closeAllConnections();
    server.close();
  });
  const postgres = await cleanup.keep(startPostgres(), (server) =>
    server.remove(),
  );
  const redis = hasRedisServer()
    ? await cleanup.keep(startRedis(), (server) => server.remove())
    : undefined;
  const url = `http://127.0.0.1:${port}`;
  const kinds: readonly Readonly<Record<string, unknown>>[] = [
    { kind: "http", url },
    { kind: "http", url, expect: { json: { status: "ok" }, within: "2s" } },
    { kind: "couchdb", url },
    { kind: "tcp", port },
    { kind: "postgres", url: postgres.url("postgres") },
    { kind: "http", url },
    redis === undefined
      ? { kind: "tcp", port }
      : { kind: "redis", url: `redis://127.0.0.1:${redis.port}` },
    {
      kind: "disk",
      path: tmpdir(),
      every: "30s",
      expect: { free_above_percent: 1 },
    },
    { kind: "backup", directory: "/nowhere", every: "30s" },
    { kind: "heartbeat" },
  ];
  return Array.from({ length: count }, (_, index) => ({
    name: `check-${index + 1}`,
    ...kinds[index % kinds.length],
  }));
}

async function unhealthyChecks(port: number): Promise<readonly string[]> {
  const answer = await fetch(`http://127.0.0.1:${port}/api/status`, {
    headers: operatorHeaders(OPERATOR_PASSWORD),
  });
  const status = (await answer.json()) as {
    readonly checks: readonly {
      readonly name: string;
      readonly kind: string;
      readonly state: string;
      readonly latest: { readonly text: string } | null;
    }[];
  };
  return status.checks
    .filter(({ state }) => state !== "up")
    .map(
      ({ name, kind, latest }) => `${name} (${kind}: ${latest?.text ?? ""})`,
    );
}

/** The resident memory of a process, and its proportional share of it, as reported by Linux. */
function memoryOf(
  pid: number,
): { readonly residentBytes: number; readonly shareBytes: number } | undefined {
  if (process.platform !== "linux") {
    return undefined;
  }
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const bytesOf = (field: string) =>
    1024 *
    Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(rollup)?.[1]);
  return { residentBytes: bytesOf("Rss"), shareBytes: bytesOf("Pss") };
}

function kindsOf(checks: readonly Readonly<Record<string, unknown>>[]): string {
  return [...new Set(checks.map(({ kind }) => String(kind)))].join(", ");
}

function mb(bytes: number): number {
  return Math.round(bytes / 1e6);
}

function report(what: string, value: string): void {
  process.stdout.write(`${what.padEnd(34)}${value}\n`);
}
