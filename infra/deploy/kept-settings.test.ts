import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { expect, test } from "vitest";
import { engineSettings, validConfig } from "../../test/infra/stack-config.ts";
import { rejectChangedIdentity } from "./kept-settings.ts";
import { openSession, readSettings } from "./session.ts";
import type { StateResource } from "./state.ts";

/** As `pulumi stack export --show-secrets` prints it. */
const secret = (value: unknown) => ({
  "4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270",
  plaintext: JSON.stringify(value),
});

const resource = (
  type: string,
  name: string,
  inputs: StateResource["inputs"] = {},
): StateResource => ({
  urn: `urn:pulumi:home::hearth::docker:index/${type}::${name}`,
  type: `docker:index/${type}`,
  provider:
    "urn:pulumi:home::hearth::pulumi:providers:docker::host-b::0123-4567",
  inputs,
});

const DEPLOYED: readonly StateResource[] = [
  resource("volume:Volume", "postgres-data", { name: "hearth-postgres" }),
  resource("container:Container", "notes", {
    uploads: secret([
      {
        file: "/opt/couchdb/etc/local.d/10-hearth.ini",
        content: `[couchdb]\nuuid = ${validConfig["notesUuid"]}\n`,
      },
    ]),
  }),
  resource("container:Container", "gateway-b", {
    uploads: secret([
      { file: "/run/hearth/DATABASE_URL", content: "postgresql://…" },
      {
        file: "/run/hearth/HEARTH_SALT_KEY",
        content: validConfig["saltKey"],
      },
    ]),
  }),
];

/** The error for a stack whose settings were changed after its deployment; "" for none. */
async function rejected(
  settings: Readonly<Record<string, string>>,
  resources = DEPLOYED,
): Promise<string> {
  const all = { ...validConfig, ...settings };
  const stack = {
    name: "home",
    getAllConfig: async () => engineSettings(all),
  } as unknown as Stack;
  const session = await openSession(stack, () => {});
  const config = await readSettings(session);
  try {
    rejectChangedIdentity(session.engines, config, {
      resources,
      pending_operations: [],
    });
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}

test("the deployed settings are accepted, and any before the first deployment", async () => {
  expect(await rejected({})).toBe("");
  expect(await rejected({ saltKey: "other-0123456789abcdef0123" }, [])).toBe(
    "",
  );
});

test.each([
  [
    { prefix: "trial" },
    "hearth:prefix is trial, but the data is in volumes such as hearth-postgres; nothing was changed: set it back: npx pulumi config set hearth:prefix hearth",
  ],
  [
    { notesUuid: "ffeeddccbbaa99887766554433221100" },
    "hearth:notesUuid is another one than deployed, with which every device syncs all notes again; nothing was changed: set it back: npx pulumi config set hearth:notesUuid 00112233445566778899aabbccddeeff",
  ],
  [
    { saltKey: "other-0123456789abcdef0123" },
    "hearth:saltKey is another one than deployed, with which the gateways cannot decrypt the credentials that they store in Postgres; nothing was changed: set it back: ssh root@192.168.1.11 docker exec hearth-gateway cat /run/hearth/HEARTH_SALT_KEY | npx pulumi config set --secret hearth:saltKey",
  ],
])("another %j is rejected", async (settings, message) => {
  expect(await rejected(settings)).toBe(message);
});
