import { beforeAll, describe, expect, test } from "vitest";
import { registerProgram, type Registered } from "../test/infra/registered.ts";
import { rightConfig, secretsOf } from "../test/infra/stack-config.ts";
import { listenersOn } from "../scripts/host-checks/needs.ts";
import { ConfigRefused, readHostSettings } from "./config.ts";
import type { StackOutputs } from "./outputs.ts";

let resources: readonly Registered[];
let outputs: StackOutputs;
let containers: readonly Registered[];

beforeAll(async () => {
  ({ resources, outputs } = await registerProgram(rightConfig));
  containers = resources.filter(
    ({ type }) => type === "docker:index/container:Container",
  );
}, 120_000);

const container = (name: string): Record<string, unknown> => {
  const found = containers.find((each) => each.name === name);
  if (found === undefined) throw new Error(`no container ${name}`);
  return found.inputs;
};

/** A list, whether or not it is a secret as a whole. */
const list = (value: unknown): readonly Record<string, unknown>[] =>
  Array.isArray(value)
    ? (value as Record<string, unknown>[])
    : typeof value === "object" && value !== null && "secret" in value
      ? list(value.secret)
      : [];

test("hosts A and B get what is placed on them", () => {
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
  ]);
  expect(on("b")).toEqual([
    "edge-b",
    "gateway-b",
    "socket-proxy-b",
    "supervisor-b",
  ]);
});

describe("every container", () => {
  const canonical = /^(\d+h\d+m\d+s|\d+m\d+s|[1-5]?\ds)$/;
  const each = (
    check: (inputs: Record<string, unknown>, name: string) => void,
  ) => containers.forEach(({ inputs, name }) => check(inputs, name));

  test("is restarted, keeps few logs, and gains no privileges", () =>
    each((inputs, name) => {
      expect(inputs, name).toMatchObject({
        restart: "unless-stopped",
        logDriver: "json-file",
        logOpts: { "max-size": "10m", "max-file": "3" },
        securityOpts: ["no-new-privileges:true"],
        capabilities: { drops: ["ALL"] },
      });
      for (const forbidden of [
        "privileged",
        "readOnly",
        "mounts",
        "networkMode",
        "cpus",
        "init",
        "tmpfs",
      ])
        expect(inputs, name).not.toHaveProperty(forbidden);
      for (const capability of (inputs.capabilities as { adds?: string[] })
        .adds ?? [])
        expect(capability).toMatch(/^CAP_[A-Z_]+$/);
    }));

  test("has a limit of memory, and memorySwap with it", () =>
    each(({ memory, memorySwap }, name) => {
      expect(memory, name).toBeGreaterThan(0);
      expect(memorySwap, name).toBe(memory);
    }));

  test("has time to stop from the first deploy, and is waited for", () =>
    each(({ destroyGraceSeconds, wait, waitTimeout }, name) => {
      expect(destroyGraceSeconds, name).toBeGreaterThanOrEqual(10);
      expect(wait, name).toBe(true);
      expect(waitTimeout, name).toBeGreaterThanOrEqual(60);
    }));

  test("has a health check with canonical durations, and nothing that old engines refuse", () =>
    each(({ healthcheck }, name) => {
      const check = healthcheck as Record<string, unknown>;
      for (const field of ["interval", "timeout", "startPeriod"])
        expect(check[field], `${name} ${field}`).toMatch(canonical);
      expect(check, name).not.toHaveProperty("startInterval");
    }));

  test("is published on addresses that were named, never on all", () =>
    each(({ ports }, name) => {
      for (const port of list(ports))
        expect(
          ["192.168.1.10", "192.168.1.11", "10.8.0.1", "10.8.0.2"],
          name,
        ).toContain(port.ip);
    }));

  test("runs the image by its id, on the host's own provider, on a network of ours", () =>
    each((inputs, name) => {
      expect(inputs.image, name).toMatch(/^sha256:of-/);
      const { provider } = containers.find((one) => one.name === name) ?? {};
      expect(provider, name).toContain("pulumi:providers:docker::host-");
      for (const network of list(inputs.networksAdvanced))
        expect(["hearth", "hearth-socket"]).toContain(network.name);
    }));

  test("says its configuration's hash in a label", () => {
    each(({ labels }, name) =>
      expect(labels, name).toEqual([
        {
          label: "hearth.config",
          value: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
        },
      ]),
    );
  });

  test("has no secret in environment, arguments or labels, and gets those it has as secret files", () => {
    each(({ uploads, ...shown }, name) => {
      for (const secret of secretsOf(rightConfig)) {
        expect(JSON.stringify(shown), name).not.toContain(secret);
        if (JSON.stringify(uploads).includes(secret))
          expect(uploads, name).toHaveProperty("secret");
      }
      for (const file of list(uploads)) {
        expect(file, name).not.toHaveProperty("owner");
        expect(["0400", "0440", "0444"]).toContain(file.permissions);
      }
    });
  });

  test("clears away what an interrupted up left under its name, and keeps what it was given secret", () => {
    for (const { name, provider, options } of containers) {
      const host = /::host-([ab])::/.exec(provider)?.[1];
      expect(options.beforeCreate, name).toEqual([`clear-way-${host}`]);
      expect(options.secretOutputs, name).toEqual(
        expect.arrayContaining(["envs", "uploads"]),
      );
      expect(options.protect, name).toBe(false);
    }
  });

  test("takes nothing from another container's outputs, which would replace it too", () =>
    each((inputs, name) => {
      for (const other of containers)
        expect(JSON.stringify(inputs), name).not.toContain(
          `"${other.name}-id"`,
        );
    }));

  test("sorts its lists", () =>
    each(({ envs }, name) => {
      const lines = envs as readonly string[];
      expect(lines, name).toEqual(lines.toSorted());
    }));
});

test("every docker and postgresql resource has a provider of its own choosing", () => {
  for (const { type, name, provider } of resources)
    if (/^(docker|postgresql):/.test(type)) expect(provider, name).not.toBe("");
});

test("images that are pulled are pinned by digest and stay for a roll back", () => {
  for (const { inputs, name, type } of resources)
    if (type === "docker:index/remoteImage:RemoteImage") {
      expect(inputs.keepLocally, name).toBe(true);
      if (inputs.build === undefined)
        expect(inputs.name, name).toMatch(/^[^@]+:[^@]+@sha256:[0-9a-f]{64}$/);
      else
        // Changed files alone are no difference: their hash is.
        expect(inputs, name).toMatchObject({
          name: expect.stringMatching(/^hearth\/\w+:[0-9a-f]{16}$/) as string,
          triggers: { content: String(inputs.name).split(":")[1] },
        });
    }
});

test("volumes outlive a destroy, twice over", () => {
  const volumes = resources.filter(
    ({ type }) => type === "docker:index/volume:Volume",
  );
  expect(volumes.length).toBeGreaterThan(4);
  for (const { name, options } of volumes) {
    expect(options.protect, name).toBe(true);
    expect(options.retainOnDelete, name).toBe(true);
  }
});

test("gateways are replaced one after the other, and the supervisor comes when there is something to watch", () => {
  const dependsOn = (name: string) =>
    containers.find((each) => each.name === name)?.options.dependsOn ?? [];
  expect(dependsOn("gateway-a")).toContain("gateway-b");
  expect(dependsOn("gateway-b")).not.toContain("gateway-a");
  expect(dependsOn("gateway-b")).toEqual(
    expect.arrayContaining(["redis", "postgres-gateway_a"]),
  );
  for (const host of ["a", "b"]) {
    expect(dependsOn(`edge-${host}`)).toEqual(
      expect.arrayContaining(["gateway-a", "gateway-b", "notes"]),
    );
    expect(dependsOn(`supervisor-${host}`)).toEqual(
      expect.arrayContaining([`edge-${host}`, `socket-proxy-${host}`]),
    );
  }
});

test("ssh is dialled once for all requests to a host", () => {
  for (const { type, inputs, name } of resources)
    if (type === "pulumi:providers:docker")
      expect(inputs.sshOpts, name).toContain("ControlMaster=auto");
});

test("networks and volumes carry no labels, which could never be changed", () => {
  for (const { inputs, name, type } of resources)
    if (/:(Network|Volume)$/.test(type))
      expect(Object.keys(inputs).toSorted(), name).toEqual(
        inputs.internal === true ? ["internal", "name"] : ["name"],
      );
});

test("the host checks know every port that is published", () => {
  const read = readHostSettings(rightConfig);
  if (!read.ok) throw new Error(read.errors.join());
  for (const host of ["a", "b"] as const) {
    const published = containers
      .filter(({ provider }) => provider.includes(`::host-${host}::`))
      .flatMap(({ inputs }) => list(inputs.ports))
      .map(({ ip, external }) => `${String(ip)}:${String(external)}`);
    expect(
      listenersOn(host, read.config)
        .map(({ address, port }) => `${address}:${port}`)
        .toSorted(),
    ).toEqual(published.toSorted());
  }
});

test("CouchDB's container, exactly", () => {
  const { uploads, ...inputs } = container("notes");
  expect(inputs).toEqual({
    name: "hearth-couchdb",
    image: "sha256:of-notes-image",
    user: "5984:0",
    envs: [],
    ports: [],
    volumes: [
      {
        volumeName: "hearth-notes",
        containerPath: "/opt/couchdb/data",
        readOnly: false,
      },
    ],
    networksAdvanced: [{ name: "hearth", aliases: ["notes"] }],
    memory: 1024,
    memorySwap: 1024,
    memoryReservation: 512,
    ulimits: [{ name: "nofile", soft: 65536, hard: 65536 }],
    capabilities: { drops: ["ALL"] },
    securityOpts: ["no-new-privileges:true"],
    healthcheck: {
      tests: [
        "CMD",
        "bash",
        "-c",
        String.raw`exec 3<>/dev/tcp/127.0.0.1/5984 && printf 'GET /_up HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3 && read -r line <&3 && [[ $line == *' 200 '* ]]`,
      ],
      interval: "30s",
      timeout: "10s",
      startPeriod: "20s",
      retries: 3,
    },
    restart: "unless-stopped",
    logDriver: "json-file",
    logOpts: { "max-size": "10m", "max-file": "3" },
    destroyGraceSeconds: 30,
    wait: true,
    waitTimeout: 150,
    labels: [{ label: "hearth.config", value: expect.any(String) as string }],
  });
  expect(list(uploads)).toEqual([
    {
      file: "/opt/couchdb/etc/local.d/10-hearth.ini",
      permissions: "0440",
      content: expect.stringContaining(
        "max_document_size = 50000000",
      ) as string,
    },
  ]);
});

test("Postgres: TCP health check, 18's volume, password by file, roles once at initdb", () => {
  expect(container("postgres")).toMatchObject({
    name: "hearth-postgres",
    envs: [
      "POSTGRES_DB=hearth",
      "POSTGRES_PASSWORD_FILE=/run/hearth/POSTGRES_PASSWORD",
    ],
    ports: [
      { ip: "10.8.0.1", internal: 5432, external: 5432, protocol: "tcp" },
    ],
    volumes: [
      { volumeName: "hearth-postgres", containerPath: "/var/lib/postgresql" },
    ],
    healthcheck: {
      tests: ["CMD", "pg_isready", "-q", "-h", "127.0.0.1", "-U", "postgres"],
    },
    waitTimeout: 120,
  });
  expect(list(container("postgres").uploads).map(({ file }) => file)).toEqual([
    "/run/hearth/POSTGRES_PASSWORD",
    "/docker-entrypoint-initdb.d/10-hearth-roles.sql",
  ]);
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

test("the postgresql provider says where, how and to which database, in plain strings", () => {
  const provider = resources.find(
    ({ type }) => type === "pulumi:providers:postgresql",
  );
  expect(provider?.inputs).toMatchObject({
    host: "10.8.0.1",
    sslmode: "disable",
    expectedVersion: "18",
    database: "hearth",
  });
});

test("Redis evicts only what expires, below the container's limit, with its password in a file alone", () => {
  const conf = list(container("redis").uploads).find(
    ({ file }) => file === "/run/hearth/redis.conf",
  );
  expect(conf?.content).toContain("maxmemory 358mb\n");
  expect(conf?.content).toContain("maxmemory-policy volatile-lru\n");
  expect(conf?.content).toContain("appendfsync everysec\n");
  expect(container("redis").command).toEqual([
    "redis-server",
    "/run/hearth/redis.conf",
  ]);
});

test("gateways reach the stores by alias on their host and by address from the other, and may drain", () => {
  for (const [name, host] of [
    ["gateway-a", "redis"],
    ["gateway-b", "10.8.0.1"],
  ] as const) {
    const { envs, uploads, destroyGraceSeconds, ports } = container(name);
    expect(envs).toContain(`REDIS_HOST=${host}`);
    const url = list(uploads).find(
      ({ file }) => file === "/run/hearth/DATABASE_URL",
    );
    expect(url?.content).toBe(
      `postgresql://gateway_a:gateway-0123456789abcdef@${host === "redis" ? "postgres" : host}:5432/hearth`,
    );
    expect(destroyGraceSeconds).toBe(135);
    expect(list(ports).map(({ ip }) => ip)).toEqual([
      name === "gateway-a" ? "10.8.0.1" : "10.8.0.2",
    ]);
  }
});

test("supervisors name each other, know what runs beside them, and the one at the data runs the jobs", () => {
  expect(container("supervisor-a").envs).toContain("HEARTH_JOBS=on");
  expect(container("supervisor-a").envs).toContain(
    "HEARTH_PEER_URL=http://10.8.0.2:4080",
  );
  expect(container("supervisor-a").envs).toContain(
    "PEER_GATEWAY_URL=http://10.8.0.2:4001",
  );
  expect(container("supervisor-a").envs).toContain(
    "NOTES_PUBLIC_URL=http://192.168.1.10:5984",
  );
  expect(container("supervisor-a").envs).toContain(
    "GATEWAY_PUBLIC_URL=http://192.168.1.10:4000",
  );
  expect(container("supervisor-b").envs).toContain("HEARTH_JOBS=off");
  expect(container("supervisor-a").envs).toContain(
    "HEARTH_CONTAINERS=edge gateway notes postgres redis",
  );
  expect(container("supervisor-b").envs).toContain(
    "HEARTH_CONTAINERS=edge gateway",
  );
  expect(container("supervisor-b").envs).toContain(
    "HEARTH_PEER_URL=http://10.8.0.1:4080",
  );
});

test("each supervisor asks its own host's gateway, with the master key in a file", () => {
  for (const name of ["supervisor-a", "supervisor-b"]) {
    const { envs, uploads } = container(name);
    expect(envs).toContain("GATEWAY_URL=http://gateway:4001");
    expect(envs).toContain(
      "PROXY_MASTER_KEY_FILE=/run/hearth/PROXY_MASTER_KEY",
    );
    expect(masterKeyOf({ uploads })).toBe(rightConfig["masterKey"]);
  }
});

test("the secrets of alerts are files of both supervisors, and of nobody else", () => {
  const slack = JSON.parse(rightConfig["alertSecrets"] ?? "{}") as {
    readonly SLACK_URL: string;
  };
  for (const { name, inputs } of containers) {
    const file = list(inputs["uploads"]).find(
      (each) => each["file"] === "/run/hearth/SLACK_URL",
    );
    expect(file?.["content"], name).toBe(
      name.startsWith("supervisor-") ? slack.SLACK_URL : undefined,
    );
    if (file !== undefined)
      expect(inputs["envs"]).toContain("SLACK_URL_FILE=/run/hearth/SLACK_URL");
  }
});

function masterKeyOf({ uploads }: Readonly<Record<string, unknown>>): unknown {
  return list(uploads).find(
    ({ file }) => file === "/run/hearth/PROXY_MASTER_KEY",
  )?.content;
}

test("the raw Docker socket is the proxy's alone, on a network without a way out", () => {
  for (const { inputs, name } of containers) {
    const holdsSocket = list(inputs.volumes).some(
      ({ hostPath }) => hostPath === "/var/run/docker.sock",
    );
    expect(holdsSocket, name).toBe(name.startsWith("socket-proxy"));
  }
  expect(container("socket-proxy-a").networksAdvanced).toEqual([
    { name: "hearth-socket", aliases: ["socket-proxy"] },
  ]);
  expect(container("socket-proxy-a").ports).toEqual([]);
});

test("edges try their own gateway first, and only the notes host's edge is believed about devices", () => {
  const caddyfile = (name: string) =>
    String(
      list(container(name).uploads).find(
        ({ file }) => file === "/etc/caddy/Caddyfile",
      )?.content,
    );
  expect(caddyfile("edge-a")).toContain(
    "reverse_proxy gateway:4001 10.8.0.2:4001",
  );
  expect(caddyfile("edge-b")).toContain(
    "reverse_proxy gateway:4001 10.8.0.1:4001",
  );
  expect(caddyfile("edge-a")).toContain("trusted_proxies static 10.8.0.2/32");
  expect(caddyfile("edge-b")).toContain("reverse_proxy 10.8.0.1:5984");
  expect(caddyfile("edge-b")).not.toContain("trusted_proxies");
  for (const edge of ["edge-a", "edge-b"]) {
    // CouchDB locks out the last one of several.
    expect(caddyfile(edge)).toContain("header_up X-Forwarded-For {client_ip}");
    // Settings of one listener replace those of all.
    for (const [, settings] of caddyfile(edge).matchAll(
      /servers [^{]*\{([^}]*)\}/g,
    ))
      expect(settings).toContain("enable_full_duplex");
  }
});

test("outputs tell addresses and next commands", () => {
  expect(outputs.gateway).toEqual([
    "http://192.168.1.10:4000/v1",
    "http://10.8.0.1:4000/v1",
    "http://192.168.1.11:4000/v1",
  ]);
  expect(
    JSON.stringify([outputs.gateway, outputs.notes, outputs.nextCommands]),
  ).not.toContain("sk-master");
  expect(outputs.nextCommands).toContain(
    "docker exec -it hearth-supervisor hearth notes setup-uri notes",
  );
});

test("a wrong configuration registers nothing", async () => {
  await expect(
    registerProgram({ ...rightConfig, masterKey: "short" }),
  ).rejects.toThrow(ConfigRefused);
}, 60_000);

test("a rotation changes logins and files, and leaves the servers that are told while they run", async () => {
  const { resources: rotated } = await registerProgram({
    ...rightConfig,
    gatewayRole: "b",
    masterKey: "sk-master-another-0123456789",
    masterKeyPrevious: "sk-master-the-one-before-0123",
    masterKeyPreviousUntil: "2027-01-31T12:00:00Z",
    redisPassword: "redis-another-0123456789",
    notesAdminPassword: "notes-another-0123456789",
  });
  const names = rotated.map(({ name }) => name);
  expect(names).toContain("postgres-gateway_b");
  expect(names).not.toContain("postgres-gateway_a");
  const containerOf = (from: readonly Registered[], name: string) =>
    from.find(
      (each) =>
        each.type === "docker:index/container:Container" && each.name === name,
    )?.inputs;
  const labelOf = (from: readonly Registered[], name: string) =>
    containerOf(from, name)?.["labels"];
  for (const server of ["postgres", "redis", "notes"])
    expect(labelOf(rotated, server), server).toEqual(
      labelOf(resources, server),
    );
  const gateway = containerOf(rotated, "gateway-b");
  expect(gateway?.["envs"]).toContain(
    "PROXY_MASTER_KEY_PREVIOUS_UNTIL=2027-01-31T12:00:00Z",
  );
  expect(gateway?.["envs"]).toContain(
    "PROXY_MASTER_KEY_PREVIOUS_FILE=/run/hearth/PROXY_MASTER_KEY_PREVIOUS",
  );
  // Whoever asks with the new key comes after those that accept it.
  for (const supervisor of ["supervisor-a", "supervisor-b"]) {
    expect(masterKeyOf(containerOf(rotated, supervisor) ?? {})).toBe(
      "sk-master-another-0123456789",
    );
    for (const each of ["gateway-a", "gateway-b"])
      expect(names.lastIndexOf(supervisor)).toBeGreaterThan(
        names.lastIndexOf(each),
      );
  }
}, 120_000);

test("what else changes in the notes server's settings is a new container", async () => {
  const { resources: changed } = await registerProgram({
    ...rightConfig,
    notesUuid: "ffeeddccbbaa99887766554433221100",
  });
  const notes = changed.find(
    ({ name, type }) =>
      name === "notes" && type === "docker:index/container:Container",
  );
  expect(notes?.inputs["labels"]).toBeDefined();
  expect(notes?.inputs["labels"]).not.toEqual(container("notes")["labels"]);
}, 120_000);
