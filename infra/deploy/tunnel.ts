import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { createConnection } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { sshCommand, type EngineAddress } from "../engine.ts";

/** What is to be reached, and from where. */
export interface TunnelWish {
  /** Of the host that the address is reached from, by ssh. */
  readonly engine: EngineAddress;
  readonly host: "a" | "b";
  readonly address: string;
  readonly port: number;
  /** Where it begins on this machine's loopback. */
  readonly localPort: number;
}

export interface Tunnel {
  close(): Promise<void>;
}

const REACHABLE_WITHIN_MS = 2_000;
const TUNNEL_WITHIN_MS = 15_000;

/** The same at each run: another port is another setting of the program's provider, and no preview would be empty. */
export function tunnelPort(stackName: string): number {
  // Below the ports that systems give to outgoing connections.
  return 20_000 + (createHash("sha256").update(stackName).digest()[0] ?? 0);
}

/** Whether the address answers at all: an accepted or a refused connection both show a way there. */
export async function isReached(
  address: string,
  port: number,
): Promise<boolean> {
  return (await knock(address, port, REACHABLE_WITHIN_MS)) !== "silent";
}

/**
 * Opens `ssh -L` and keeps it open until `close`, or until this process ends, whichever way it does. Throws a sentence when it
 * cannot be opened.
 */
export async function openTunnel({
  engine,
  host,
  address,
  port,
  localPort,
}: TunnelWish): Promise<Tunnel> {
  const elsewhere =
    "or set hearth:postgresAt to where this machine reaches Postgres.";
  if (
    (await knock("127.0.0.1", localPort, REACHABLE_WITHIN_MS)) === "accepted"
  ) {
    throw new Error(
      `port ${localPort} of this machine, where the ssh tunnel to Postgres is to begin, is taken by another program: end it, ${elsewhere}`,
    );
  }
  const to = address.includes(":") ? `[${address}]` : address;
  const ssh = sshCommand(engine, [
    "-T",
    // The tunnel ends with this process, not with a shared connection.
    "-o",
    "ControlPath=none",
    "-o",
    "ExitOnForwardFailure=yes",
    "-L",
    `127.0.0.1:${localPort}:${to}:${port}`,
  ]);
  if (ssh === null) {
    throw new Error(`${engine.endpoint} is not reached by ssh`);
  }
  const [file, ...args] = ssh;
  // cat ends when its input does: when this process is gone, killed too. In a group of its own, as Ctrl-C is not meant for it.
  const child = spawn(file, [...args, "cat"], {
    stdio: ["pipe", "ignore", "inherit"],
    detached: true,
  });
  let failed: NodeJS.ErrnoException | undefined;
  child.on("error", (error) => (failed = error));
  child.stdin.on("error", () => undefined);
  const ended = new Promise<void>((resolve) => {
    child.on("close", () => resolve());
  });
  const until = Date.now() + TUNNEL_WITHIN_MS;
  while ((await knock("127.0.0.1", localPort, 500)) !== "accepted") {
    if (failed !== undefined) {
      throw new Error(
        failed.code === "ENOENT"
          ? `no ssh tunnel to Postgres on host ${host.toUpperCase()}: this machine has no ssh command; install it, ${elsewhere}`
          : `no ssh tunnel to Postgres on host ${host.toUpperCase()} (${failed.message}): ssh could not be started; mend that, ${elsewhere}`,
      );
    }
    if (child.exitCode !== null || Date.now() > until) {
      child.kill();
      throw new Error(
        `no ssh tunnel to Postgres on host ${host.toUpperCase()}: see what ssh says above, ${elsewhere}`,
      );
    }
    await sleep(200);
  }
  return {
    async close() {
      child.kill();
      await ended;
    },
  };
}

function knock(
  host: string,
  port: number,
  timeout: number,
): Promise<"accepted" | "refused" | "silent"> {
  return new Promise((resolve) => {
    const socket = createConnection({ host, port, timeout });
    const end = (answer: "accepted" | "refused" | "silent"): void => {
      socket.destroy();
      resolve(answer);
    };
    socket.on("connect", () => end("accepted"));
    socket.on("timeout", () => end("silent"));
    socket.on("error", (error: NodeJS.ErrnoException) =>
      end(error.code === "ECONNREFUSED" ? "refused" : "silent"),
    );
  });
}
