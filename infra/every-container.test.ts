import { readHostSettings } from "./config/config.ts";
import { memoryOn } from "./hosts/needs.ts";
import { beforeAll, describe, expect, test } from "vitest";
import {
  containersOf,
  listOf,
  registerProgram,
  type Registered,
} from "../test/infra/registered.ts";
import { validConfig, secretsOf } from "../test/infra/stack-config.ts";

let containers: readonly Registered[];

beforeAll(async () => {
  containers = containersOf((await registerProgram(validConfig)).resources);
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
      ]) {
        expect(inputs, name).not.toHaveProperty(forbidden);
      }
      for (const capability of (inputs.capabilities as { adds?: string[] })
        .adds ?? []) {
        expect(capability).toMatch(/^CAP_[A-Z_]+$/);
      }
    }));

  test("has a memory limit and an equal memorySwap", () =>
    each(({ memory, memorySwap }, name) => {
      expect(memory, name).toBeGreaterThan(0);
      expect(memorySwap, name).toBe(memory);
    }));

  test("counts with its limit in what doctor --hosts expects of its host", () => {
    const read = readHostSettings(validConfig);
    for (const host of ["a", "b"] as const) {
      const limits = containers
        .filter(({ provider }) => provider?.includes(`::host-${host}::`))
        .map(({ inputs }) => Number(inputs.memory));
      expect(limits.length).toBeGreaterThan(0);
      expect(read.ok && memoryOn(host, read.config)).toBe(
        limits.reduce((sum, each) => sum + each, 0),
      );
    }
  });

  test("writes no core dump, which would have its secrets and may fill a volume", () =>
    each(({ ulimits }, name) =>
      expect(listOf(ulimits), name).toContainEqual({
        name: "core",
        soft: 0,
        hard: 0,
      }),
    ));

  test("has a stop timeout from the first deployment, and is waited for", () =>
    each(({ destroyGraceSeconds, wait, waitTimeout }, name) => {
      expect(destroyGraceSeconds, name).toBeGreaterThanOrEqual(10);
      expect(wait, name).toBe(true);
      expect(waitTimeout, name).toBeGreaterThanOrEqual(60);
    }));

  test("has a health check with canonical durations, and nothing that old engines reject", () =>
    each(({ healthcheck }, name) => {
      const check = healthcheck as Record<string, unknown>;
      for (const field of ["interval", "timeout", "startPeriod"]) {
        expect(check[field], `${name} ${field}`).toMatch(canonical);
      }
      expect(check, name).not.toHaveProperty("startInterval");
    }));

  test("is published on named addresses only, never on all", () =>
    each(({ ports }, name) => {
      for (const port of listOf(ports)) {
        expect(
          ["192.168.1.10", "192.168.1.11", "10.8.0.1", "10.8.0.2"],
          name,
        ).toContain(port.ip);
      }
    }));

  test("runs the image by its id, on the host's own provider, on the stack's network", () =>
    each((inputs, name) => {
      expect(inputs.image, name).toMatch(/^sha256:of-/);
      const { provider } = containers.find((one) => one.name === name) ?? {};
      expect(provider, name).toContain("pulumi:providers:docker::host-");
      for (const network of listOf(inputs.networksAdvanced)) {
        expect(["hearth", "hearth-socket"]).toContain(network.name);
      }
    }));

  test("has labels with its stack and its configuration's hash", () => {
    each(({ labels }, name) =>
      expect(labels, name).toEqual([
        {
          label: "hearth.config",
          value: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
        },
        { label: "hearth.stack", value: "hearth/home" },
      ]),
    );
  });

  test("has no secret in environment, arguments or labels, but in files that only its user can read", () => {
    each(({ uploads, user, ...shown }, name) => {
      const secrets = secretsOf(validConfig);
      for (const secret of secrets) {
        expect(JSON.stringify(shown), name).not.toContain(secret);
        if (JSON.stringify(uploads).includes(secret)) {
          expect(uploads, name).toHaveProperty("secret");
        }
      }
      for (const file of listOf(uploads)) {
        expect(file, name).not.toHaveProperty("owner");
        expect(file.content, `${name} ${String(file.file)}`).not.toBe("");
        const isSecret = secrets.some((secret) =>
          String(file.content).includes(secret),
        );
        // Uploads belong to root: they are read by an entrypoint that starts as root, or through root's group.
        const own = user === undefined ? "0400" : "0440";
        if (user !== undefined) {
          expect(user, name).toMatch(/^\d+:0$/);
        }
        expect(
          isSecret ? [own] : [own, "0440", "0444"],
          `${name} ${String(file.file)}`,
        ).toContain(file.permissions);
      }
    });
  });

  test("removes the leftover of an interrupted up with its name, and keeps secret inputs secret", () => {
    for (const { name, provider, options } of containers) {
      const host = /::host-([ab])::/.exec(provider)?.[1];
      expect(options.beforeCreate, name).toEqual([`clear-way-${host}`]);
      expect(options.secretOutputs, name).toEqual(
        expect.arrayContaining(["envs", "uploads"]),
      );
      expect(options.protect, name).toBe(false);
    }
  });

  test("depends on no output of another resource except its image's id, and a gateway on its network's subnets: a replacement would replace it too", () => {
    for (const { name, options } of containers) {
      expect(options.madeFrom, name).toEqual({
        image: [`${name}-image`],
        // The proxies that a gateway trusts for callers' addresses.
        ...(/^gateway-/.test(name)
          ? { uploads: [name.replace("gateway", "network")] }
          : {}),
      });
    }
  });

  test("sorts its lists, so that a different order is not a change", () =>
    each(({ envs, ports, capabilities }, name) => {
      const lines = envs as readonly string[];
      expect(lines, name).toEqual(lines.toSorted());
      const published = listOf(ports).map(
        ({ internal, ip }) => `${String(internal).padStart(5)} ${String(ip)}`,
      );
      expect(published, name).toEqual(published.toSorted());
      const { adds = [] } = capabilities as { adds?: readonly string[] };
      expect(adds, name).toEqual(adds.toSorted());
    }));

  test("is replaced by every change of an input except a password that is rotated in the running server", () => {
    const ignored = Object.fromEntries(
      containers
        .filter(({ options }) => options.ignoreChanges.length > 0)
        .map(({ name, inputs, options }) => [
          name,
          options.ignoreChanges.map((property) => {
            const [, index] =
              /^uploads\[(\d+)\]\.content$/.exec(property) ?? [];
            return listOf(inputs.uploads)[Number(index)]?.file ?? property;
          }),
        ]),
    );
    expect(ignored).toEqual({
      postgres: ["/run/hearth/POSTGRES_PASSWORD"],
      redis: ["/run/hearth/REDIS_PASSWORD", "/run/hearth/redis.acl"],
      notes: ["/opt/couchdb/etc/local.d/10-hearth.ini"],
    });
  });
});
