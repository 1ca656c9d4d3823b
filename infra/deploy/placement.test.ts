import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { expect, test } from "vitest";
import { readHostSettings } from "../config/config.ts";
import { validConfig } from "../../test/infra/stack-config.ts";
import { followPlacement } from "./placement.ts";
import type { State } from "./state.ts";

const on = (host: string, type: string, name: string) => ({
  urn: `urn:pulumi:home::hearth::hearth:data:Server$docker:index/${type}::${name}`,
  type: `docker:index/${type}`,
  provider: `urn:pulumi:home::hearth::pulumi:providers:docker::host-${host}::x`,
  inputs: { name: `hearth-${name.replace("-data", "")}` },
});
const container = (host: string, name: string) =>
  on(host, "container:Container", name);
const volume = (host: string, name: string) =>
  on(host, "volume:Volume", `${name}-data`);

/** Applies a placement to a state; returns the remaining state and the output. */
async function follow(
  placement: Readonly<Record<string, "a" | "b">>,
  resources: State["resources"],
) {
  const read = readHostSettings({
    ...validConfig,
    placement: JSON.stringify(placement),
  });
  const output: string[] = [];
  let left = resources;
  const stack = {
    name: "home",
    exportStack: async () => ({ deployment: { resources } }),
    importStack: async ({ deployment }: { deployment: State }) => {
      left = deployment.resources;
    },
  } as unknown as Stack;
  await followPlacement({
    stack,
    hosts: read.ok ? read.config : null,
    say: (line) => output.push(line),
  });
  return { output, left };
}

test("a service that runs on the other host is rejected with the next steps", async () => {
  await expect(
    follow({ redis: "b" }, [container("a", "redis"), volume("a", "redis")]),
  ).rejects.toThrow(
    'hearth:placement.redis is host B, but redis and its data are on host A; nothing was changed: set it back (npx pulumi config set --path hearth:placement.redis a); to move the service, run `npm run deploy -- destroy` afterwards, copy the data and change the setting again (docs/deploy.md, "Move a service").',
  );
});

test("after a destroy only the volume that stays behind is removed from the state", async () => {
  const kept = [volume("a", "postgres"), volume("a", "journal-a")];
  const { output, left } = await follow({ redis: "b" }, [
    ...kept,
    volume("a", "redis"),
  ]);
  expect(left).toEqual(kept);
  expect(output).toEqual([
    "host A: hearth-redis is kept but no longer part of the stack",
  ]);
});

test("without a moved service nothing is printed or changed", async () => {
  const resources = [container("a", "redis"), container("b", "gateway-b")];
  const { output, left } = await follow({}, resources);
  expect(left).toBe(resources);
  expect(output).toEqual([]);
});
