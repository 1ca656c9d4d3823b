import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { expect, test } from "vitest";
import { readHostSettings } from "../config/config.ts";
import { validConfig } from "../../test/infra/stack-config.ts";
import { onHost } from "./without-host.ts";

const urn = (type: string, name: string) =>
  `urn:pulumi:home::hearth::${type}::${name}`;
const resource = (type: string, name: string, provider?: string) => ({
  urn: urn(type, name),
  type: type.split("$").at(-1) ?? type,
  ...(provider === undefined ? {} : { provider: `${provider}::id` }),
});
const docker = (host: string) => urn("pulumi:providers:docker", `host-${host}`);
const login = urn(
  "hearth:data:PostgresServer$pulumi:providers:postgresql",
  "postgres-login",
);
const CONTAINER = "docker:index/container:Container";
const stack = {
  exportStack: async () => ({
    deployment: {
      resources: [
        resource("pulumi:providers:docker", "host-a"),
        resource("pulumi:providers:docker", "host-b"),
        resource(CONTAINER, "postgres", docker("a")),
        resource(CONTAINER, "gateway-a", docker("a")),
        resource(CONTAINER, "gateway-b", docker("b")),
        resource("hearth:data:PostgresServer", "postgres"),
        resource(
          "hearth:data:PostgresServer$pulumi:providers:postgresql",
          "postgres-login",
        ),
        resource("postgresql:index/role:Role", "postgres-backup", login),
      ],
    },
  }),
} as unknown as Stack;

const read = readHostSettings(validConfig);
const hosts = read.ok ? read.config : null;
const namesWithout = async (host: "a" | "b") =>
  (await onHost({ stack, hosts }, host)).map((each) => each.split("::").at(-1));

test("a host that is down is excluded with its provider", async () => {
  expect(await namesWithout("b")).toEqual(["host-b", "gateway-b"]);
});

test("with the host of Postgres the login roles and their provider are excluded too", async () => {
  expect(await namesWithout("a")).toEqual([
    "host-a",
    "postgres",
    "gateway-a",
    "postgres-login",
    "postgres-backup",
  ]);
});
