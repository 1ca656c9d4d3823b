import { beforeAll, expect, test } from "vitest";
import {
  containersOf,
  listOf,
  registerProgram,
  type Registered,
} from "../test/infra/registered.ts";
import { validConfig } from "../test/infra/stack-config.ts";

/** Hearth's images come from a registry, so none is built. */
const config = {
  ...validConfig,
  images: JSON.stringify({
    gateway: `registry.example.org/gateway:1@sha256:${"0".repeat(64)}`,
    supervisor: `registry.example.org/supervisor:1@sha256:${"1".repeat(64)}`,
  }),
};
let before: readonly Registered[];

beforeAll(async () => {
  before = (await registerProgram(config)).resources;
});

function container(from: readonly Registered[], name: string): Registered {
  const found = containersOf(from).find((each) => each.name === name);
  if (found === undefined) {
    throw new Error(`no container ${name}`);
  }
  return found;
}

/** A container's inputs as the engine compares them, without those in `ignoreChanges`. */
function compared({ inputs, options }: Registered): unknown {
  return {
    ...inputs,
    uploads: listOf(inputs["uploads"]).map(({ content, ...file }, index) =>
      options.ignoreChanges.includes(`uploads[${index}].content`)
        ? file
        : { ...file, content },
    ),
  };
}

test("a rotation changes logins and files, and keeps the servers that are changed while running", async () => {
  const { resources: rotated } = await registerProgram({
    ...config,
    gatewayRole: "b",
    masterKey: "sk-master-another-0123456789",
    masterKeyPrevious: "sk-master-the-one-before-0123",
    masterKeyPreviousUntil: "2027-01-31T12:00:00Z",
    postgresPassword: "postgres-another-0123456789",
    redisPassword: "redis-another-0123456789",
    notesAdminPassword: "notes-another-0123456789",
  });
  const names = rotated.map(({ name }) => name);
  expect(names).toContain("postgres-gateway_b");
  expect(names).not.toContain("postgres-gateway_a");
  for (const server of ["postgres", "redis", "notes"]) {
    const [was, is] = [container(before, server), container(rotated, server)];
    expect(compared(is), server).toEqual(compared(was));
    // A server created for another reason gets the new password.
    expect(is.inputs["uploads"], server).not.toEqual(was.inputs["uploads"]);
  }
  for (const gateway of ["gateway-a", "gateway-b"]) {
    expect(container(rotated, gateway).inputs["envs"], gateway).toEqual(
      expect.arrayContaining([
        "PROXY_MASTER_KEY_PREVIOUS_UNTIL=2027-01-31T12:00:00Z",
        "PROXY_MASTER_KEY_PREVIOUS_FILE=/run/hearth/PROXY_MASTER_KEY_PREVIOUS",
      ]),
    );
  }
  for (const name of [
    "gateway-a",
    "gateway-b",
    "supervisor-a",
    "supervisor-b",
  ]) {
    expect(
      listOf(container(rotated, name).inputs["uploads"]),
      name,
    ).toContainEqual(
      expect.objectContaining({
        file: "/run/hearth/PROXY_MASTER_KEY",
        content: "sk-master-another-0123456789",
      }),
    );
  }
});

test("any other change of the notes server's settings replaces the container", async () => {
  const { resources: changed } = await registerProgram({
    ...config,
    notesUuid: "ffeeddccbbaa99887766554433221100",
  });
  expect(compared(container(changed, "notes"))).not.toEqual(
    compared(container(before, "notes")),
  );
});
