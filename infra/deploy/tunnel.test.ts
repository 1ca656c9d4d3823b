import { spawn } from "node:child_process";
import {
  chmodSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createConnection, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { freePort, listen } from "../../test/servers/ports.ts";
import { inProject } from "../project-files.ts";
import { isReached, openTunnel, tunnelPort } from "./tunnel.ts";

/** Forwards like `ssh -L` until the end of its input, like `ssh HOST cat`, and records its arguments. */
const forwarder = `#!${process.execPath}
const { createConnection, createServer } = require("node:net");
const { writeFileSync } = require("node:fs");
const args = process.argv.slice(2);
writeFileSync(__dirname + "/args", args.join("\\n"));
const [, from, to] = /^127.0.0.1:(\\d+):127.0.0.1:(\\d+)$/.exec(args[args.indexOf("-L") + 1]);
createServer((near) => {
  const far = createConnection(Number(to), "127.0.0.1");
  near.pipe(far).pipe(near);
  for (const end of [near, far]) end.on("error", () => {});
}).listen(Number(from), "127.0.0.1");
process.stdin.on("end", () => process.exit(0)).resume();
`;

let directory: string;
let closings: (() => unknown)[];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-tunnel-"));
  closings = [() => rmSync(directory, { recursive: true })];
});
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const close of closings.reverse()) {
    await close();
  }
});

function installSsh(program: string): void {
  writeFileSync(join(directory, "ssh"), program);
  chmodSync(join(directory, "ssh"), 0o755);
  vi.stubEnv("PATH", `${directory}:${process.env["PATH"] ?? ""}`);
}

/** Starts a server that answers "hello"; returns its port. */
async function greet(port = 0): Promise<number> {
  const server = createServer((socket) =>
    // A probe of the port ends with a reset.
    socket.on("error", () => undefined).end("hello"),
  );
  closings.push(() => server.close());
  return await listen(server, { port });
}

function readAll(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = "";
    createConnection(port, "127.0.0.1")
      .on("data", (piece) => (output += String(piece)))
      .on("error", reject)
      .on("end", () => resolve(output));
  });
}

const optionsFor = (port: number, localPort: number) => ({
  engine: {
    endpoint: "ssh://root@10.8.0.1",
    sshOpts: ["-o", "ControlPath=~/.ssh/hearth-%C"],
  },
  host: "a" as const,
  address: "127.0.0.1",
  port,
  localPort,
});

test("connections on this machine reach the host until the tunnel is closed", async () => {
  installSsh(forwarder);
  const localPort = await freePort();
  const tunnel = await openTunnel(optionsFor(await greet(), localPort));
  expect(await readAll(localPort)).toBe("hello");
  const args = readFileSync(join(directory, "args"), "utf8").split("\n");
  // ssh uses the first of two options: the operator's shared connection would outlive the run.
  expect(args.find((each) => each.startsWith("ControlPath"))).toBe(
    "ControlPath=none",
  );
  await tunnel.close();
  await expect(readAll(localPort)).rejects.toThrow("ECONNREFUSED");
});

test("the tunnel of a killed run ends with it", async () => {
  installSsh(forwarder);
  const localPort = await freePort();
  const program = join(directory, "run.ts");
  writeFileSync(
    program,
    `import { openTunnel } from ${JSON.stringify(inProject("infra/deploy/tunnel.ts"))};
await openTunnel(${JSON.stringify(optionsFor(await greet(), localPort))});
process.stdout.write("open");
setInterval(() => {}, 1000);`,
  );
  const run = spawn(process.execPath, [program], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  closings.push(() => run.kill("SIGKILL"));
  await new Promise((resolve) => run.stdout.once("data", resolve));
  expect(await readAll(localPort)).toBe("hello");
  run.kill("SIGKILL");
  await expect
    .poll(() => readAll(localPort).catch((error: Error) => error.message), {
      timeout: 20_000,
    })
    .toMatch("ECONNREFUSED");
});

test("a missing ssh, a failing ssh, and a used port are one sentence each", async () => {
  const localPort = await freePort();
  installSsh("#!/bin/sh\nexit 255\n");
  await expect(openTunnel(optionsFor(5432, localPort))).rejects.toThrow(
    "no ssh tunnel to Postgres on host A: check the output of ssh above, or set hearth:postgresAt to an address at which this machine reaches Postgres.",
  );
  vi.stubEnv("PATH", join(directory, "empty"));
  await expect(openTunnel(optionsFor(5432, localPort))).rejects.toThrow(
    "no ssh tunnel to Postgres on host A: ssh is not installed on this machine; fix that, or set hearth:postgresAt to an address at which this machine reaches Postgres.",
  );
  await greet(localPort);
  await expect(openTunnel(optionsFor(5432, localPort))).rejects.toThrow(
    `port ${localPort} of this machine, needed for the ssh tunnel to Postgres, is in use: wait if another run of this stack uses it, stop any other program, or set hearth:postgresAt to an address at which this machine reaches Postgres.`,
  );
});

test("an accepted and a refused connection both count as reachable", async () => {
  expect(await isReached("127.0.0.1", await greet())).toBe(true);
  expect(await isReached("127.0.0.1", await freePort())).toBe(true);
});

test("an answer that arrives while this process is busy counts", async () => {
  const port = await greet();
  const reached = isReached("127.0.0.1", port);
  // Longer than the probe waits.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_500);
  expect(await reached).toBe(true);
});

test("a stack's tunnel always uses the same local port", () => {
  expect(tunnelPort("home")).toBe(tunnelPort("home"));
  expect(tunnelPort("home")).not.toBe(tunnelPort("test"));
});
