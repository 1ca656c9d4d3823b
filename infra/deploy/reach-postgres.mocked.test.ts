import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { POSTGRES_AT_VARIABLE } from "../config/program-config.ts";
import { validConfig } from "../../test/infra/stack-config.ts";
import { tunnelPort } from "./tunnel.ts";
import { reachPostgres } from "./reach-postgres.ts";
import { openSession } from "./session.ts";

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
  const all = Object.fromEntries(
    Object.entries({ ...validConfig, ...more }).map(([key, value]) => [
      `hearth:${key}`,
      { value },
    ]),
  );
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

test("a host that does not respond is named instead of its tunnel, together with the other one", async () => {
  writeFileSync(
    join(directory, "ssh"),
    "#!/bin/sh\necho 'root@192.168.1.10: Permission denied (publickey).' >&2; exit 255\n",
  );
  const away = (host: string) =>
    `host ${host}: Docker does not respond (root@192.168.1.10: Permission denied (publickey))`;
  await expect(reachPostgres(await sessionWith(), "b")).rejects.toThrow(
    `${away("A")}; nothing was changed: check that \`ssh root@192.168.1.10 docker ps\` works, then run the same command again.`,
  );
  await expect(reachPostgres(await sessionWith(), undefined)).rejects.toThrow(
    `${away("A")}; ${away("B")}; nothing was changed: check that`,
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
