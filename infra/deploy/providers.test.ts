import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { afterEach, expect, test } from "vitest";
import { readHostSettings } from "../config/config.ts";
import { POSTGRES_AT_VARIABLE } from "../config/program-config.ts";
import { engineSettings, validConfig } from "../../test/infra/stack-config.ts";
import { renewProviders } from "./providers.ts";
import { openSession } from "./session.ts";

const provider = (name: string, inputs: object) => ({
  urn: `urn:pulumi:home::hearth::pulumi:providers:x::${name}`,
  type: "pulumi:providers:x",
  inputs,
});
const settings = readHostSettings(validConfig);
/** The engine's form of a provider's lists. */
const sshOpts = JSON.stringify(
  settings.ok ? settings.config.hosts.a.sshOpts : [],
);
const asConfigured = {
  a: provider("host-a", { host: "ssh://root@192.168.1.10", sshOpts }),
  b: provider("host-b", { host: "ssh://root@192.168.1.11", sshOpts }),
  login: provider("postgres-login", { host: "10.8.0.1", port: "5432" }),
};

/** The names of the providers that are updated in the state. */
async function renewed(
  state: Readonly<Record<string, object>>,
  without?: "a" | "b",
): Promise<readonly string[]> {
  let updated: readonly string[] = [];
  const stack = {
    name: "home",
    getAllConfig: async () => engineSettings(validConfig),
    exportStack: async () => ({
      deployment: { resources: Object.values(state) },
    }),
    up: async ({ target }: { target: readonly string[] }) => {
      updated = target.map((urn) => urn.split("::").at(-1) ?? "");
    },
  } as unknown as Stack;
  await renewProviders(await openSession(stack, () => undefined), without);
  return updated;
}

afterEach(() => {
  delete process.env[POSTGRES_AT_VARIABLE];
});

test("nothing is done if the addresses in the state match the configuration", async () => {
  expect(await renewed(asConfigured)).toEqual([]);
  expect(await renewed({})).toEqual([]);
});

test("an address changes from tunnel to direct, and back", async () => {
  const tunnelled = provider("postgres-login", {
    host: "127.0.0.1",
    port: "20007",
  });
  expect(await renewed({ ...asConfigured, login: tunnelled })).toEqual([
    "postgres-login",
  ]);
  process.env[POSTGRES_AT_VARIABLE] = "127.0.0.1:20007";
  expect(await renewed({ ...asConfigured, login: tunnelled })).toEqual([]);
  expect(await renewed(asConfigured)).toEqual(["postgres-login"]);
});

test("a host at another address is updated, unless it is excluded", async () => {
  const moved = provider("host-b", {
    host: "ssh://root@192.168.1.99",
    sshOpts,
  });
  expect(await renewed({ ...asConfigured, b: moved })).toEqual(["host-b"]);
  expect(await renewed({ ...asConfigured, b: moved }, "b")).toEqual([]);
});

test("a host with other ssh options is updated", async () => {
  const before = provider("host-b", {
    host: "ssh://root@192.168.1.11",
    sshOpts: JSON.stringify(["-i", "old-key"]),
  });
  expect(await renewed({ ...asConfigured, b: before })).toEqual(["host-b"]);
});
