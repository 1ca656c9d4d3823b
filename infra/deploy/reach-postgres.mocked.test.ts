import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { POSTGRES_AT_VARIABLE } from "../config/program-config.ts";
import { engineSettings, validConfig } from "../../test/infra/stack-config.ts";
import { tunnelPort } from "./tunnel.ts";
import { reachPostgres } from "./reach-postgres.ts";
import { openSession } from "./session.ts";
import { runVerb } from "./verbs.ts";

/** Listens at the port of `ssh -L` and exits at the end of its input; every other command succeeds without output. */
const listener = `#!${process.execPath}
if (!process.argv.includes("-L")) process.exit();
const [, port] = /^127.0.0.1:(\\d+):/.exec(process.argv[process.argv.indexOf("-L") + 1]);
require("node:net").createServer((socket) => socket.on("error", () => {})).listen(Number(port), "127.0.0.1");
process.stdin.on("end", () => process.exit(0)).resume();
`;

// Mocked, since machines differ in the addresses that they can reach.
vi.mock("./tunnel.ts", async (original) => ({
  ...(await original<typeof import("./tunnel.ts")>()),
  isReached: async () => false,
}));

const stackName = `tunnel-${process.pid}`;
let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "hearth-reach-"));
  writeFileSync(join(directory, "ssh"), listener);
  chmodSync(join(directory, "ssh"), 0o755);
  vi.stubEnv("PATH", `${directory}:${process.env["PATH"] ?? ""}`);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(directory, { recursive: true });
});

function sessionWith(more: Readonly<Record<string, string>> = {}) {
  const all = engineSettings({ ...validConfig, ...more });
  const stack = { name: stackName, getAllConfig: async () => all };
  return openSession(stack as unknown as Stack, () => undefined);
}

test("only this run gets the tunnel's address", async () => {
  const tunnel = await reachPostgres(await sessionWith(), undefined);
  try {
    expect(process.env[POSTGRES_AT_VARIABLE]).toBe(
      `127.0.0.1:${tunnelPort(stackName)}`,
    );
  } finally {
    await tunnel?.close();
  }
  expect(process.env[POSTGRES_AT_VARIABLE]).toBeUndefined();
});

test("a host that does not respond is left to the verb, which offers to leave it out", async () => {
  writeFileSync(
    join(directory, "ssh"),
    "#!/bin/sh\necho 'root@192.168.1.10: Permission denied (publickey).' >&2; exit 255\n",
  );
  const session = await sessionWith();
  expect(await reachPostgres(session, "b")).toBeNull();
  await expect(runVerb(session, ["refresh"], { without: "b" })).rejects.toThrow(
    "host A: Docker does not respond (root@192.168.1.10: Permission denied (publickey)); nothing was changed: check that `ssh root@192.168.1.10 docker ps` works, or leave it out with --without a.",
  );
});

test("no tunnel if Postgres' host is excluded or the operator set its address", async () => {
  expect(await reachPostgres(await sessionWith(), "a")).toBeNull();
  const postgresAt = JSON.stringify({ host: "127.0.0.1", port: 5432 });
  expect(
    await reachPostgres(await sessionWith({ postgresAt }), undefined),
  ).toBeNull();
  vi.stubEnv(POSTGRES_AT_VARIABLE, "127.0.0.1:5432");
  expect(await reachPostgres(await sessionWith(), undefined)).toBeNull();
});
