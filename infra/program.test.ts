import * as pulumi from "@pulumi/pulumi";
import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { beforeAll, expect, test } from "vitest";
import { expectedCertificates } from "../test/infra/expected-inputs.ts";
import {
  containersOf,
  listOf,
  registerBy,
  registerProgram,
  type Registered,
} from "../test/infra/registered.ts";
import { validConfig, secretsOf } from "../test/infra/stack-config.ts";
import { openSession } from "./deploy/session.ts";
import { listenersOn } from "./config/listeners.ts";
import { ConfigRejected, readHostSettings } from "./config/config.ts";
import { program } from "./index.ts";
import type { StackOutputs } from "./outputs.ts";

let resources: readonly Registered[];
let outputs: StackOutputs;
let containers: readonly Registered[];

beforeAll(async () => {
  ({ resources, outputs } = await registerProgram(validConfig));
  containers = containersOf(resources);
});

const container = (name: string): Record<string, unknown> => {
  const found = containers.find((each) => each.name === name);
  if (found === undefined) {
    throw new Error(`no container ${name}`);
  }
  return found.inputs;
};

test("hosts A and B get the services placed on them", () => {
  const on = (host: string) =>
    containers
      .filter(({ provider }) => provider.includes(`::host-${host}::`))
      .map(({ name }) => name)
      .toSorted();
  expect(on("a")).toEqual([
    "edge-a",
    "gateway-a",
    "notes",
    "postgres",
    "redis",
    "socket-proxy-a",
    "supervisor-a",
    "tls-a",
  ]);
  expect(on("b")).toEqual([
    "edge-b",
    "gateway-b",
    "socket-proxy-b",
    "supervisor-b",
    "tls-b",
  ]);
});

test("no resource has delete hooks, for which destroy would need the program, and each is deleted by itself", () => {
  for (const { name, options } of resources) {
    expect(options.deleteHooks, name).toEqual([]);
    expect(options.deletedWith, name).toBe("");
  }
});

test("networks and roles that are not in the state are removed before they are created", () => {
  const hooks = Object.fromEntries(
    resources
      .filter(({ type }) => /:(Network|Role)$/.test(type))
      .map(({ name, options }) => [name, options.beforeCreate]),
  );
  expect(hooks).toEqual({
    "network-a": ["clear-network-a"],
    "socket-network-a": ["clear-network-a"],
    "network-b": ["clear-network-b"],
    "socket-network-b": ["clear-network-b"],
    "postgres-gateway_a": ["clear-role"],
    "postgres-supervisor": ["clear-role"],
    "postgres-backup": ["clear-role"],
  });
});

test("the engine runs four operations in parallel: each is a connection over ssh", async () => {
  // The options that every verb passes on.
  const stack = {
    name: "home",
    getAllConfig: async () => ({}),
  } as unknown as Stack;
  const { options } = await openSession(stack, () => undefined);
  expect(options.parallel).toBe(4);
});

test("every docker and postgresql resource has an explicit provider", () => {
  for (const { type, name, provider } of resources) {
    if (/^(docker|postgresql):/.test(type)) {
      expect(provider, name).not.toBe("");
    }
  }
});

test("images are pinned by digest or built before they are looked up, and kept for a rollback", () => {
  const images = resources.filter(
    ({ type }) => type === "docker:index/remoteImage:RemoteImage",
  );
  for (const { inputs, name, options } of images) {
    const built = /^(gateway|supervisor)-[ab]-image$/.exec(name);
    expect(inputs, name).toEqual({
      name: expect.stringMatching(
        built === null
          ? /^[^@]+:[^@]+@sha256:[0-9a-f]{64}$/
          : new RegExp(`^hearth/${built[1]}:[0-9a-f]{16}$`),
      ) as string,
      keepLocally: true,
    });
    expect(options.beforeCreate, name).toEqual(
      built === null ? [] : [`build-${name}`],
    );
  }
  expect(images).toHaveLength(containers.length);
});

test("volumes are kept by destroy in two ways", () => {
  const volumes = resources.filter(
    ({ type }) => type === "docker:index/volume:Volume",
  );
  expect(volumes.length).toBeGreaterThan(4);
  for (const { name, options } of volumes) {
    expect(options.protect, name).toBe(true);
    expect(options.retainOnDelete, name).toBe(true);
    // A destroy would also keep a volume's dependencies in the state.
    expect(options.dependsOn, name).toEqual([]);
  }
});

test("gateways are replaced one after the other, and the supervisor is created after the services it watches", () => {
  const dependsOn = (name: string) =>
    containers.find((each) => each.name === name)?.options.dependsOn ?? [];
  expect(dependsOn("gateway-a")).toContain("gateway-b");
  expect(dependsOn("gateway-b")).not.toContain("gateway-a");
  expect(dependsOn("edge-a")).toContain("edge-b");
  expect(dependsOn("gateway-b")).toEqual(
    expect.arrayContaining(["redis", "postgres-gateway_a"]),
  );
  for (const host of ["a", "b"]) {
    expect(dependsOn(`edge-${host}`)).toEqual(
      expect.arrayContaining(["gateway-a", "gateway-b", "notes"]),
    );
    expect(dependsOn(`supervisor-${host}`)).toEqual(
      expect.arrayContaining([
        `edge-${host}`,
        `tls-${host}`,
        `socket-proxy-${host}`,
      ]),
    );
  }
});

test("all requests to a host share one ssh connection, which ends when the host no longer responds", () => {
  for (const { type, inputs, name } of resources) {
    if (type === "pulumi:providers:docker") {
      expect(inputs.sshOpts, name).toContain("ControlMaster=auto");
      expect(inputs.sshOpts, name).toContain("ServerAliveInterval=10");
    }
  }
});

test("networks have no labels, and volumes one that never changes: a changed label would replace them", () => {
  for (const { inputs, name, options, type } of resources) {
    if (type.endsWith(":Network")) {
      expect(inputs, name).not.toHaveProperty("labels");
    }
    if (type.endsWith(":Volume")) {
      expect(inputs.labels, name).toEqual([
        { label: "hearth.stack", value: "hearth/home" },
      ]);
      expect(options.ignoreChanges, name).toEqual(["labels"]);
    }
  }
});

test("programs of a stack other than the default one know its name, for commands in their messages", async () => {
  const variablesOf = async (stack: string) => {
    const { resources } = await registerBy(program, validConfig, stack);
    return containersOf(resources)
      .filter(({ inputs }) =>
        JSON.stringify(inputs.envs).includes("HEARTH_STACK=trial"),
      )
      .map(({ name }) => name)
      .toSorted();
  };
  expect(await variablesOf("trial")).toEqual([
    "gateway-a",
    "gateway-b",
    "supervisor-a",
    "supervisor-b",
  ]);
  expect(JSON.stringify(containers)).not.toContain("HEARTH_STACK");
});

test("with its own prefix and ports, a stack shares no name and no port of a host with another", async () => {
  const other = await registerProgram({
    ...validConfig,
    prefix: "trial",
    ports: JSON.stringify({
      edge: 14_000,
      edgeTls: 10_443,
      notes: 15_984,
      gatewayTls: 14_444,
      notesTls: 16_984,
      console: 14_443,
      postgres: 15_432,
      redis: 16_379,
    }),
  });
  const held = (all: readonly Registered[]) => [
    ...all
      .filter(({ type }) => /:(Container|Network|Volume)$/.test(type))
      .map(({ inputs, type }) => `${type} ${String(inputs.name)}`),
    ...containersOf(all)
      .flatMap(({ inputs }) => listOf(inputs.ports))
      .map(({ ip, external }) => `${String(ip)}:${String(external)}`),
  ];
  const both = held(resources);
  for (const each of held(other.resources)) {
    expect(both).not.toContain(each);
  }
  const [volumes, files] = ["volumes", "uploads"].map((input) =>
    JSON.stringify(
      containersOf(other.resources).flatMap(({ inputs }) =>
        listOf(inputs[input]),
      ),
    ),
  );
  expect(volumes).not.toContain("hearth-");
  expect(files).toContain("10.8.0.1:15432/hearth");
  expect(files).toContain("10.8.0.2:14444");
  expect(JSON.stringify(other.outputs)).toContain("http://192.168.1.10:14000");
});

test("the host checks cover every published port", () => {
  const read = readHostSettings(validConfig);
  if (!read.ok) {
    throw new Error(read.errors.join());
  }
  for (const host of ["a", "b"] as const) {
    const published = containers
      .filter(({ provider }) => provider.includes(`::host-${host}::`))
      .flatMap(({ inputs }) => listOf(inputs.ports))
      .map(({ ip, external }) => `${String(ip)}:${String(external)}`);
    expect(
      listenersOn(host, read.config)
        .map(({ address, port }) => `${address}:${port}`)
        .toSorted(),
    ).toEqual(published.toSorted());
  }
});

test("login roles get verifiers, own nothing, and are members of the groups that own and read", () => {
  const roles = Object.fromEntries(
    resources
      .filter(({ type }) => type === "postgresql:index/role:Role")
      .map(({ inputs }) => [inputs.name, inputs]),
  );
  const verifier = {
    secret: expect.stringMatching(/^SCRAM-SHA-256\$4096:/) as string,
  };
  expect(roles).toEqual({
    gateway_a: {
      name: "gateway_a",
      login: true,
      password: verifier,
      roles: ["hearth_owner"],
      assumeRole: "hearth_owner",
    },
    supervisor: {
      name: "supervisor",
      login: true,
      password: verifier,
      roles: ["hearth_reports"],
    },
    backup: {
      name: "backup",
      login: true,
      password: verifier,
      roles: ["hearth_reader"],
      createDatabase: true,
    },
  });
  expect(
    resources.filter(({ type }) => /[Gg]rant|DefaultPrivileges/.test(type)),
  ).toEqual([]);
});

test("the postgresql provider has address, options and database as plain strings", async () => {
  const certificates = await expectedCertificates();
  const provider = resources.find(
    ({ type }) => type === "pulumi:providers:postgresql",
  );
  // The provider's inputs are passed as JSON; its secrets are marked as a whole.
  expect(provider?.inputs).toEqual({
    // Set by the package.
    connectTimeout: "180",
    host: "10.8.0.1",
    port: "5432",
    username: "postgres",
    password: { secret: "postgres-0123456789abcdef" },
    sslmode: "verify-full",
    sslrootcert: certificates.authority,
    clientcert: {
      secret: JSON.stringify({
        cert: certificates.postgres.certificate,
        key: certificates.postgres.key,
        sslinline: true,
      }),
    },
    expectedVersion: "18",
    database: "hearth",
    superuser: "true",
  });
  expect(provider?.options.madeFrom).toEqual({});
});

test("only the proxy has the Docker socket, on an internal network", () => {
  for (const { inputs, name } of containers) {
    const holdsSocket = listOf(inputs.volumes).some(
      ({ hostPath }) => hostPath === "/var/run/docker.sock",
    );
    expect(holdsSocket, name).toBe(name.startsWith("socket-proxy"));
  }
  expect(container("socket-proxy-a").networksAdvanced).toEqual([
    { name: "hearth-socket", aliases: ["socket-proxy"] },
  ]);
  expect(container("socket-proxy-a").ports).toEqual([]);
});

test("outputs contain addresses and next commands", () => {
  expect(outputs.gateway).toEqual([
    "http://192.168.1.10:4000/v1",
    "http://10.8.0.1:4000/v1",
    "http://192.168.1.11:4000/v1",
  ]);
  expect(outputs.supervisor).toEqual([
    "https://192.168.1.10:4443",
    "https://10.8.0.1:4443",
    "https://192.168.1.11:4443",
  ]);
  expect(
    JSON.stringify([outputs.gateway, outputs.notes, outputs.nextCommands]),
  ).not.toContain("sk-master");
  expect(outputs.nextCommands).toEqual([
    "npx pulumi stack output --show-secrets masterKey",
    `curl http://192.168.1.10:4000/key/generate -H "Authorization: Bearer $(npx pulumi stack output --show-secrets masterKey)" -d '{"user_id": "me", "max_budget": 1}'`,
    "ssh root@192.168.1.10 docker exec hearth-supervisor hearth status",
    "ssh root@192.168.1.10 docker exec hearth-supervisor hearth open",
    "ssh -t root@192.168.1.10 docker exec -it hearth-supervisor hearth notes setup-uri notes",
  ]);
});

test("no input contains a secret of the configuration, or a value derived from one, in clear", async () => {
  const certificates = await expectedCertificates();
  const secrets = [
    ...secretsOf(validConfig),
    certificates.postgres.key,
    certificates.redis.key,
    certificates.tls.a.key,
    certificates.tls.b.key,
  ];
  expect(secrets.length).toBeGreaterThan(15);
  for (const { name, plainTexts } of resources) {
    for (const text of plainTexts) {
      for (const secret of [...secrets, "SCRAM-SHA-256$", "PRIVATE KEY"]) {
        expect(text.includes(secret), `${name}: ${text}`).toBe(false);
      }
    }
  }
  for (const name of [
    "masterKey",
    "operatorPassword",
    "notesAdminPassword",
  ] as const) {
    expect(await pulumi.isSecret(outputs[name]), name).toBe(true);
  }
});

test("a wrong configuration registers nothing", async () => {
  await expect(
    registerProgram({ ...validConfig, masterKey: "short" }),
  ).rejects.toThrow(ConfigRejected);
});

test("an image with another major version of Postgres than the data's registers nothing", async () => {
  const images = JSON.stringify({
    postgres: `docker.io/library/postgres:19.0-trixie@sha256:${"0".repeat(64)}`,
  });
  await expect(registerProgram({ ...validConfig, images })).rejects.toThrow(
    "hearth:postgresVersion is 18, the version of the data, but the image docker.io/library/postgres:19.0-trixie has Postgres 19: run `npm run deploy -- upgrade postgres` to copy the data; without data: npx pulumi config set hearth:postgresVersion 19",
  );
});
