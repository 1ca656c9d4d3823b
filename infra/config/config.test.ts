import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { makeSecrets } from "../hosts/init-questions.ts";
import { annotatedTwoHosts } from "./annotated-stack.ts";
import { inProject } from "../project-files.ts";
import { validConfig } from "../../test/infra/stack-config.ts";
import { secretFields } from "./config-schema.ts";
import { readConfig } from "./config.ts";

const read = (
  changes: Readonly<Record<string, string | undefined>>,
  isSecret: (key: string) => boolean = (key) => secretFields.includes(key),
) =>
  readConfig({
    values: Object.fromEntries(
      Object.entries({ ...validConfig, ...changes }).filter(
        (entry): entry is [string, string] => entry[1] !== undefined,
      ),
    ),
    isSecret,
  });

const errorsOf = (...args: Parameters<typeof read>): readonly string[] => {
  const result = read(...args);
  return result.ok ? [] : result.errors;
};

const host = (changes: Readonly<Record<string, unknown>>): string =>
  JSON.stringify({
    ...(JSON.parse(validConfig["hosts"] ?? "") as Record<string, unknown>),
    ...changes,
  });
const a = {
  docker: "ssh://root@192.168.1.10",
  address: "10.8.0.1",
  publish: ["192.168.1.10"],
};
const edge = (value: unknown) => ({ edge: JSON.stringify(value) });
const set = (key: string, value: string) =>
  `npx pulumi config set ${key} ${value}`;
const setSecret = (key: string) =>
  `openssl rand -hex 24 | npx pulumi config set --secret ${key}`;

test("a valid configuration is read, with its defaults", () => {
  const result = read({});
  expect(result).toMatchObject({
    ok: true,
    config: {
      placement: { postgres: "a", redis: "a", notes: "a" },
      memory: { postgres: 1024, redis: 512, gateway: 512, supervisor: 256 },
      drainTimeout: 120,
      gatewayRole: "a",
      notesOpenFiles: 65_536,
      providerKeys: { OPENAI_API_KEY: "sk-openai-0123456789" },
    },
  });
});

test("the notes alone may have a host name", () => {
  expect(
    errorsOf(edge({ tls: "internal", notesHostname: "notes.example.org" })),
  ).toEqual([]);
});

test("ten mistakes are reported at once, each with the command that fixes it", () => {
  expect(
    errorsOf({
      hosts: host({
        a: { ...a, docker: "192.168.1.10", publish: ["0.0.0.0"] },
      }),
      placement: JSON.stringify({ postgres: "c" }),
      memory: JSON.stringify({ redis: 1 }),
      edge: JSON.stringify({ tls: "yes" }),
      drainTimeout: "soon",
      localRunnerA: "http://localhost:11434",
      masterKey: "short",
      saltKey: undefined,
      colour: "blue",
    }),
  ).toEqual([
    `hearth:hosts.a.docker must be ssh://USER@HOST, unix:///var/run/docker.sock or tcp://HOST:PORT (an IPv6 address in brackets): ${set("--path hearth:hosts.a.docker", "ssh://root@192.168.1.10")}`,
    `hearth:hosts.a.publish.0 must be one address of that host, since everything would be open to every network: npx pulumi config set --path 'hearth:hosts.a.publish[0]' 192.168.1.10`,
    `hearth:localRunnerA must not be a loopback address: in a container that is the container itself: ${set("hearth:localRunnerA", "http://192.168.1.10:11434")}`,
    `hearth:placement.postgres must be a or b: ${set("--path hearth:placement.postgres", "a")}`,
    `hearth:memory.redis must be a whole number from 64 to 1048576: ${set("--path hearth:memory.redis", "512")}`,
    `hearth:edge.tls must be none, files, internal or acme: ${set("--path hearth:edge.tls", "internal")}`,
    `hearth:drainTimeout must be a duration such as 120s, 2m or 1h: ${set("hearth:drainTimeout", "120s")}`,
    `hearth:masterKey must be at least 20 letters, digits, - and _ (it is part of addresses): ${setSecret("hearth:masterKey")}`,
    `hearth:saltKey is required: ${setSecret("hearth:saltKey")}`,
    'hearth: unknown setting "colour": npx pulumi config rm hearth:colour',
  ]);
});

test("no message contains a secret", () => {
  expect(errorsOf({ masterKey: "too short a secret" }).join()).not.toContain(
    "too short a secret",
  );
});

test("the shipped example validates once init has created its secrets", () => {
  const example = parse(
    readFileSync(inProject(annotatedTwoHosts.file), "utf8"),
  ) as {
    readonly config: Readonly<Record<string, unknown>>;
  };
  const settings = Object.fromEntries(
    Object.entries(example.config).map(([key, value]) => [
      key.replace("hearth:", ""),
      typeof value === "string" ? value : JSON.stringify(value),
    ]),
  );
  expect(
    Object.keys(settings).filter((key) => secretFields.includes(key)),
  ).toEqual([]);
  expect(
    readConfig({
      values: { ...settings, ...makeSecrets() },
      isSecret: (key) => secretFields.includes(key),
    }).ok,
  ).toBe(true);
});
