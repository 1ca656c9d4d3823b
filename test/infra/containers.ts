import { expect, vi } from "vitest";
import type { Testbed } from "./testbed.ts";

/** Names without "hearth-", by host. */
export const containers = {
  a: [
    "couchdb",
    "edge",
    "gateway",
    "postgres",
    "redis",
    "socket-proxy",
    "supervisor",
    "tls",
  ],
  b: ["edge", "gateway", "socket-proxy", "supervisor", "tls"],
} as const;

/** The fields of `docker inspect` used by these tests. */
interface Inspected {
  readonly HostConfig: Readonly<Record<string, unknown>>;
  readonly Config: { readonly Healthcheck: { readonly Interval: number } };
}

export async function inspect(
  testbed: Testbed,
  host: "a" | "b",
  ...names: string[]
): Promise<readonly Inspected[]> {
  return JSON.parse(
    await testbed.docker(host, "inspect", ...names),
  ) as Inspected[];
}

export async function healthyOn(
  testbed: Testbed,
  host: "a" | "b",
): Promise<readonly string[]> {
  const names = await testbed.docker(
    host,
    "ps",
    "--filter",
    "label=hearth.config",
    "--filter",
    "health=healthy",
    "--format",
    "{{.Names}}",
  );
  return names.trim().split("\n").toSorted();
}

/** Waits until every container of both hosts is healthy; in a hook too. */
export async function allHealthy(testbed: Testbed): Promise<void> {
  for (const host of ["a", "b"] as const) {
    await vi.waitFor(
      async () =>
        expect(await healthyOn(testbed, host)).toEqual(
          containers[host].map((name) => `hearth-${name}`),
        ),
      { timeout: 400_000, interval: 1_000 },
    );
  }
}

/** Container ids by host and name. */
export async function containerIds(
  testbed: Testbed,
): Promise<Readonly<Record<string, string>>> {
  const found: Record<string, string> = {};
  for (const host of ["a", "b"] as const) {
    const lines = await testbed.docker(
      host,
      "ps",
      "-a",
      "--filter",
      "label=hearth.config",
      "--format",
      "{{.Names}} {{.ID}}",
    );
    for (const line of lines.trim().split("\n").toSorted()) {
      const [name = "", id = ""] = line.split(" ");
      found[`${host} ${name}`] = id;
    }
  }
  return found;
}

/** Containers with another id than before, or with none then. */
export async function changedSince(
  testbed: Testbed,
  before: Readonly<Record<string, string>>,
): Promise<readonly string[]> {
  const after = await containerIds(testbed);
  return Object.keys(after).filter((name) => after[name] !== before[name]);
}

/** Sends a request from the supervisor's container; returns the status. */
export async function throughSocketProxy(
  testbed: Testbed,
  method: string,
  path: string,
): Promise<number> {
  const script = `const r = require("http").request({host: "socket-proxy", port: 2375, method: ${JSON.stringify(method)}, path: ${JSON.stringify(path)}}, (a) => { console.log(a.statusCode); process.exit(); }); r.end();`;
  return Number(
    await testbed.docker(
      "a",
      "exec",
      "hearth-supervisor",
      "node",
      "-e",
      script,
    ),
  );
}

/** The last log lines of every container, for a failed scenario. */
export async function showContainers(testbed: Testbed): Promise<void> {
  for (const host of ["a", "b"] as const) {
    for (const name of containers[host]) {
      process.stdout.write(
        `  ${host} ${name}: ${await testbed.log(host, `hearth-${name}`).catch(() => "no log\n")}`,
      );
    }
  }
}
