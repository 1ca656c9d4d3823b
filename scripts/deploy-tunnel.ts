import { spawn } from "node:child_process";
import { createConnection, createServer, type AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import type { EngineAddress } from "../infra/engine.ts";

export interface Tunnel {
  close(): Promise<void>;
}

const postgresPort = 5432;
const reachableWithinMs = 2_000;
const tunnelWithinMs = 15_000;

/**
 * Opens `ssh -L` to Postgres where this machine does not reach it, and tells the program for as long as the tunnel stands. null:
 * none is needed, or there is no Postgres yet that could be reached (then its port is free and only ssh can bring it).
 */
export async function openTunnel(
  stack: Stack,
  engines: Readonly<Record<"a" | "b", EngineAddress>>,
): Promise<Tunnel | null> {
  const config = await stack.getAllConfig();
  if (config["hearth:postgresAt"] !== undefined) return null;
  const hosts = JSON.parse(config["hearth:hosts"]?.value ?? "{}") as Partial<
    Record<"a" | "b", { readonly address?: string }>
  >;
  const placement = JSON.parse(config["hearth:placement"]?.value ?? "{}") as {
    readonly postgres?: "a" | "b";
  };
  const at = placement.postgres ?? "a";
  const address = hosts[at]?.address;
  const ssh = /^ssh:\/\/([^/:]+)(?::(\d+))?$/.exec(engines[at].endpoint);
  // Configuration mistakes are the program's to tell; without ssh there is no other way than the address.
  if (address === undefined || ssh === null) return null;
  if (await hasRouteTo(address)) return null;

  const port = await freePort();
  const child = spawn(
    "ssh",
    [
      ...engines[at].sshOpts,
      "-N",
      "-o",
      "ExitOnForwardFailure=yes",
      // The tunnel ends with this process, not with a shared connection.
      "-o",
      "ControlPath=none",
      "-L",
      `127.0.0.1:${port}:${address}:${postgresPort}`,
      ...(ssh[2] === undefined ? [] : ["-p", ssh[2]]),
      ssh[1] ?? "",
    ],
    { stdio: ["ignore", "ignore", "inherit"] },
  );
  const until = Date.now() + tunnelWithinMs;
  while (!(await answers("127.0.0.1", port, 500))) {
    if (child.exitCode !== null || Date.now() > until) {
      child.kill();
      throw new Error(
        `no ssh tunnel to Postgres on host ${at.toUpperCase()}: see what ssh says above, or set hearth:postgresAt to where this machine reaches it.`,
      );
    }
    await sleep(200);
  }
  await stack.setConfig(
    "hearth:postgresAt",
    { value: JSON.stringify({ host: "127.0.0.1", port }) },
    false,
  );
  return {
    async close() {
      await stack.removeConfig("hearth:postgresAt");
      child.kill();
    },
  };
}

/** Whether the address answers at all: an accepted or a refused connection both show a way there. */
function hasRouteTo(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({
      host: address,
      port: postgresPort,
      timeout: reachableWithinMs,
    });
    const end = (reached: boolean): void => {
      socket.destroy();
      resolve(reached);
    };
    socket.on("connect", () => end(true));
    socket.on("timeout", () => end(false));
    socket.on("error", (error: NodeJS.ErrnoException) =>
      end(error.code === "ECONNREFUSED"),
    );
  });
}

function answers(
  host: string,
  port: number,
  timeout: number,
): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ host, port, timeout });
    const end = (reached: boolean): void => {
      socket.destroy();
      resolve(reached);
    };
    socket.on("connect", () => end(true));
    socket.on("timeout", () => end(false));
    socket.on("error", () => end(false));
  });
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
