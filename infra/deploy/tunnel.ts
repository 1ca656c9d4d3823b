import { hash } from "node:crypto";
import { createConnection } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { startProcess, type Execution } from "../../core/execute.ts";
import { sshCommand, type EngineAddress } from "../engine.ts";

export interface TunnelOptions {
  /** Engine of the host from which the address is reached, by ssh. */
  readonly engine: EngineAddress;
  readonly host: "a" | "b";
  readonly address: string;
  readonly port: number;
  /** On the loopback of this machine. */
  readonly localPort: number;
}

export interface Tunnel {
  close(): Promise<void>;
}

const REACHABLE_WITHIN_MS = 2_000;
const TUNNEL_WITHIN_MS = 15_000;
const OTHER_WAY =
  "or set hearth:postgresAt to an address at which this machine reaches Postgres.";

/** The same in each run: another port would be a change of the provider in every preview. */
export function tunnelPort(stackName: string): number {
  // Below the port range of outgoing connections.
  return 20_000 + (hash("sha256", stackName, "buffer")[0] ?? 0);
}

/** Whether the address is reachable: an accepted and a refused connection both show that it is. */
export async function isReached(
  address: string,
  port: number,
): Promise<boolean> {
  return (await knock(address, port, REACHABLE_WITHIN_MS)) !== "silent";
}

/**
 * Opens `ssh -L` and keeps it open until `close` or the end of this process, however it ends. Throws one sentence if it cannot be
 * opened.
 */
export async function openTunnel(options: TunnelOptions): Promise<Tunnel> {
  const { host, localPort } = options;
  const isOpen = async (timeout: number): Promise<boolean> =>
    (await knock("127.0.0.1", localPort, timeout)) === "accepted";
  if (await isOpen(REACHABLE_WITHIN_MS)) {
    throw new Error(
      `port ${localPort} of this machine, needed for the ssh tunnel to Postgres, is in use: wait if another run of this stack uses it, stop any other program, ${OTHER_WAY}`,
    );
  }
  const [file, ...args] = buildTunnelCommand(options);
  const ssh = startProcess(file, args, {
    stdin: "pipe",
    stdout: "ignore",
    stderr: "inherit",
    // Ctrl-C is not meant for it.
    detached: true,
  });
  ssh.stdin?.on("error", () => undefined);
  let ended: Execution | undefined;
  void ssh.ended.then((execution) => (ended = execution));
  const deadline = performance.now() + TUNNEL_WITHIN_MS;
  while (!(await isOpen(500))) {
    if (ended !== undefined || performance.now() > deadline) {
      void ssh.stop();
      throw new Error(
        ended?.startError === undefined
          ? `no ssh tunnel to Postgres on host ${host.toUpperCase()}: check the output of ssh above, ${OTHER_WAY}`
          : `no ssh tunnel to Postgres on host ${host.toUpperCase()}: ${ended.reason}; fix that, ${OTHER_WAY}`,
      );
    }
    await sleep(200);
  }
  return {
    async close() {
      await ssh.stop();
    },
  };
}

/** `cat` ends with its input, thus also when this process is killed. */
function buildTunnelCommand({
  engine,
  address,
  port,
  localPort,
}: TunnelOptions): readonly [string, ...string[]] {
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
  return [...ssh, "cat"];
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
    // After an answer that arrived while this process was busy.
    socket.on("timeout", () => setImmediate(end, "silent"));
    socket.on("error", (error: NodeJS.ErrnoException) =>
      end(error.code === "ECONNREFUSED" ? "refused" : "silent"),
    );
  });
}
