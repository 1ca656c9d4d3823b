import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { serversAllowed } from "./allowed.ts";
import { freePort } from "./ports.ts";

/** A real pgbouncer on a free port. */
export interface TestPgbouncer {
  /** The address of a database of its server, through it. */
  through(databaseUrl: string): string;
  /** Starts it again on the same port. */
  start(): Promise<void>;
  /** Kills it. */
  stop(): Promise<void>;
  remove(): Promise<void>;
}

const INSTALL =
  "pgbouncer is not installed: install it (apt install pgbouncer, brew install pgbouncer) and run again.";

/** Debian installs it where ordinary users have no path. */
const env = { PATH: `${process.env["PATH"] ?? ""}:/usr/sbin` };
const installed = spawnSync("pgbouncer", ["--version"], { env }).status === 0;

/** Whether tests with pgbouncer can run. If not, prints that they are skipped, or throws in CI. */
export function hasPgbouncer(): boolean {
  if (installed) {
    return true;
  }
  if (process.env["CI"]) {
    throw new Error(INSTALL);
  }
  process.stderr.write(`Tests with pgbouncer are skipped. ${INSTALL}\n`);
  return false;
}

/**
 * Starts it in front of the server of a database's address, for the login of that address. By default in transaction mode with
 * four connections to the server; `settings` are those of pgbouncer.ini.
 */
export async function startPgbouncer(
  databaseUrl: string,
  settings: Readonly<Record<string, string | number>> = {},
): Promise<TestPgbouncer> {
  serversAllowed();
  if (!installed) {
    throw new Error(INSTALL);
  }
  const directory = mkdtempSync(join(tmpdir(), "hearth-test-pgbouncer-"));
  const port = await freePort();
  const file = writeSettings(directory, new URL(databaseUrl), {
    listen_addr: "127.0.0.1",
    listen_port: port,
    unix_socket_dir: "",
    auth_type: "scram-sha-256",
    auth_file: join(directory, "users"),
    pool_mode: "transaction",
    default_pool_size: 4,
    max_client_conn: 200,
    server_login_retry: 0.2,
    ...settings,
  });
  // It does not run as root.
  const user = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
  let server: ChildProcess | null = null;

  async function start(): Promise<void> {
    server = spawn("pgbouncer", [...user, file], {
      env,
      stdio: ["ignore", "ignore", "pipe"],
    });
    await untilListening(server, port);
  }

  async function stop(): Promise<void> {
    const child = server;
    server = null;
    if (child?.exitCode === null && child.signalCode === null) {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    }
  }

  await start();
  return {
    start,
    stop,
    through(url) {
      const address = new URL(url);
      address.port = String(port);
      return address.href;
    },
    async remove() {
      await stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function writeSettings(
  directory: string,
  { hostname, port, username, password }: URL,
  settings: Readonly<Record<string, string | number>>,
): string {
  const file = join(directory, "pgbouncer.ini");
  const lines = Object.entries(settings).map(
    ([name, value]) => `${name} = ${value}`,
  );
  writeFileSync(
    file,
    `[databases]\n* = host=${hostname} port=${port}\n[pgbouncer]\n${lines.join("\n")}\n`,
  );
  writeFileSync(
    join(directory, "users"),
    `"${decodeURIComponent(username)}" "${decodeURIComponent(password)}"\n`,
  );
  // Read by the user that it changes to.
  chmodSync(directory, 0o755);
  return file;
}

async function untilListening(
  server: ChildProcess,
  port: number,
): Promise<void> {
  let output = "";
  server.stderr?.on(
    "data",
    (chunk: Buffer) => (output = (output + chunk.toString()).slice(-4_000)),
  );
  for (let tries = 0; ; tries++) {
    if (server.exitCode !== null || tries > 400) {
      server.kill("SIGKILL");
      throw new Error(`pgbouncer did not start on port ${port}: ${output}`);
    }
    const socket = createConnection({ host: "127.0.0.1", port });
    const up = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (up) {
      return;
    }
    await sleep(25);
  }
}
