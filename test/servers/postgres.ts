import { spawn, type ChildProcess } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statfsSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { locateHome } from "../../supervisor/home/home.ts";
import { buildPostgresArgs } from "../../embedded/postgres.ts";
import { ensureCluster } from "../../embedded/postgres-cluster.ts";
import {
  asUser,
  findPostgresPlace,
  type PostgresPlace,
} from "../../embedded/postgres-place.ts";
import { serversAllowed } from "./allowed.ts";
import { freePort } from "./ports.ts";

/** A real Postgres in a temporary directory. */
export interface TestPostgres {
  readonly port: number;
  /** The directory of its data. */
  readonly data: string;
  /** The URL of a database as superuser. */
  url(database: string): string;
  /** Does nothing if it is running. */
  start(): Promise<void>;
  /** Fast shutdown; with SIGQUIT an immediate one, as after a power failure, which SIGKILL does not even announce. */
  stop(how?: "SIGINT" | "SIGQUIT" | "SIGKILL"): Promise<void>;
  /** Stops it and removes its data. */
  remove(): Promise<void>;
}

export const SUPERUSER_PASSWORD = "test-superuser-password";

const SHARED_MEMORY = "/dev/shm";
const LEAST_BYTES = 4e9;

/** A file system in memory if it has room: every test creates a database of several megabytes. */
function dataPlace(): string {
  if (!existsSync(SHARED_MEMORY)) {
    return tmpdir();
  }
  const { bavail, bsize } = statfsSync(SHARED_MEMORY);
  return bavail * bsize >= LEAST_BYTES ? SHARED_MEMORY : tmpdir();
}

/** `create`: makes the data directory; by default an empty cluster. */
export async function startPostgres(
  extraArgs: readonly string[] = [],
  create: (place: PostgresPlace) => Promise<void> = (place) =>
    ensureCluster(place, SUPERUSER_PASSWORD),
): Promise<TestPostgres> {
  serversAllowed();
  const root = mkdtempSync(join(dataPlace(), "hearth-test-postgres-"));
  const place = await findPostgresPlace(locateHome({ HEARTH_HOME: root }));
  try {
    await create(place);
  } catch (error) {
    rmSync(root, { recursive: true, force: true });
    throw error;
  }
  const port = await freePort();
  const url = (database: string) =>
    `postgres://postgres:${SUPERUSER_PASSWORD}@127.0.0.1:${port}/${database}`;
  let server: ChildProcess | null = null;

  async function start(): Promise<void> {
    if (server !== null && server.exitCode === null) {
      return;
    }
    const child = spawn(
      join(place.binaries, "bin", "postgres"),
      [
        ...buildPostgresArgs(place.data, port),
        "-c",
        "max_connections=100",
        "-c",
        "fsync=off",
        ...extraArgs,
      ],
      {
        ...asUser(place.user),
        env: { PATH: "/usr/bin:/bin", LC_ALL: "C" },
        stdio: ["ignore", "ignore", "pipe"],
      },
    );
    let output = "";
    child.stderr.on(
      "data",
      (chunk: Buffer) => (output = (output + chunk.toString()).slice(-4_000)),
    );
    server = child;
    for (let tries = 0; ; tries++) {
      if (child.exitCode !== null || tries > 600) {
        throw new Error(`the test Postgres did not start: ${output}`);
      }
      const client = new pg.Client({
        connectionString: url("postgres"),
        connectionTimeoutMillis: 2_000,
      });
      client.on("error", () => undefined);
      const up = await client.connect().then(
        () => true,
        () => false,
      );
      await client.end().catch(() => undefined);
      if (up) {
        return;
      }
      await sleep(50);
    }
  }

  async function stop(
    how: "SIGINT" | "SIGQUIT" | "SIGKILL" = "SIGINT",
  ): Promise<void> {
    const child = server;
    server = null;
    if (child === null || child.exitCode !== null) {
      return;
    }
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill(how);
    await ended;
  }

  async function remove(): Promise<void> {
    await stop("SIGQUIT");
    rmSync(root, { recursive: true, force: true });
  }

  try {
    await start();
  } catch (error) {
    await remove();
    throw error;
  }
  return {
    port,
    data: place.data,
    url,
    start,
    stop,
    remove,
  };
}

/** The statements that create the roles. */
export const ROLES_SQL: string = readFileSync(
  new URL("../../config/postgres-roles.sql", import.meta.url),
  "utf8",
);
