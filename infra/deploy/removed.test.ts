import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { afterEach, expect, test, vi } from "vitest";
import { readHostSettings } from "../config/config.ts";
import { engineSettings, validConfig } from "../../test/infra/stack-config.ts";
import { forgetRemoved } from "./removed.ts";
import { openSession } from "./session.ts";
import { CONTAINER_TYPE } from "./state.ts";

const directories: string[] = [];
afterEach(() => {
  vi.unstubAllEnvs();
  for (const directory of directories.splice(0)) {
    rmSync(directory, { recursive: true });
  }
});

/** Two hosts behind a fake ssh, with their `docker ps` output; others do not respond. */
function hostsWith(ids: Readonly<Record<string, readonly string[]>>): void {
  const directory = mkdtempSync(join(tmpdir(), "hearth-removed-"));
  directories.push(directory);
  const answers = Object.entries(ids).map(
    ([address, there]) =>
      `*${address}*"'ps'"*) printf '%s' '${there.map((id) => `${id}\tname\tUp\n`).join("")}' ;;\n*${address}*"'volume'"*) ;;`,
  );
  writeFileSync(
    join(directory, "ssh"),
    `#!/bin/sh\ncase "$*" in\n${answers.join("\n")}\n*) exit 255 ;;\nesac\n`,
  );
  chmodSync(join(directory, "ssh"), 0o755);
  vi.stubEnv("PATH", `${directory}:${process.env["PATH"] ?? ""}`);
}

const settings = readHostSettings(validConfig);
/** The engine's form of a provider's lists. */
const sshOpts = JSON.stringify(
  settings.ok ? settings.config.hosts.a.sshOpts : [],
);
const provider = (host: string, endpoint: string) => ({
  urn: `urn:pulumi:home::hearth::pulumi:providers:docker::host-${host}`,
  type: "pulumi:providers:docker",
  inputs: { host: endpoint, sshOpts },
});
const container = (name: string, host: string, id: string) => ({
  urn: `urn:pulumi:home::hearth::${CONTAINER_TYPE}::${name}`,
  type: CONTAINER_TYPE,
  id,
  provider: `urn:pulumi:home::hearth::pulumi:providers:docker::host-${host}::1`,
  inputs: { name: `hearth-${name.replace(/-[ab]$/, "")}` },
});
const redis = container("redis", "a", "id-of-redis");
const edge = container("edge-b", "b", "id-of-edge");

/** The resources that were refreshed, and the output. */
async function forgotten(leftOut: readonly string[] = []) {
  const refreshed: unknown[] = [];
  const output: string[] = [];
  const stack = {
    name: "home",
    getAllConfig: async () => engineSettings(validConfig),
    exportStack: async () => ({
      deployment: {
        resources: [
          provider("a", "ssh://root@192.168.1.10"),
          provider("b", "ssh://root@192.168.1.11"),
          redis,
          edge,
        ],
      },
    }),
    refresh: async ({ target }: { readonly target: unknown }) =>
      refreshed.push(target),
  } as unknown as Stack;
  const session = await openSession(stack, (line) => output.push(line));
  await forgetRemoved(session, leftOut);
  return { refreshed, output };
}

test("a container removed from its host is read again and reported", async () => {
  hostsWith({ "192.168.1.10": ["id-of-redis"], "192.168.1.11": ["another"] });
  expect(await forgotten()).toEqual({
    refreshed: [[edge.urn]],
    output: ["Removed manually: hearth-edge on host B."],
  });
});

test("if all exist nothing is done", async () => {
  hostsWith({
    "192.168.1.10": ["id-of-redis"],
    "192.168.1.11": ["id-of-edge"],
  });
  expect(await forgotten()).toEqual({ refreshed: [], output: [] });
});

test("an excluded host, or one that does not respond, is not checked", async () => {
  hostsWith({ "192.168.1.10": [], "192.168.1.11": [] });
  expect((await forgotten([edge.urn])).refreshed).toEqual([[redis.urn]]);
  hostsWith({ "192.168.1.10": ["id-of-redis"] });
  expect((await forgotten()).refreshed).toEqual([]);
});
