import { runtime } from "@pulumi/pulumi";
import { afterEach, expect, test, vi } from "vitest";
import { validConfig } from "../test/infra/stack-config.ts";
import {
  POSTGRES_AT_VARIABLE,
  readStackConfig,
} from "./config/program-config.ts";
import { secretFields } from "./config/config-schema.ts";

afterEach(() => vi.unstubAllEnvs());

function read(more: Readonly<Record<string, string>> = {}) {
  runtime.setAllConfig(
    Object.fromEntries(
      Object.entries({ ...validConfig, ...more }).map(([key, value]) => [
        `hearth:${key}`,
        value,
      ]),
    ),
    secretFields.map((key) => `hearth:${key}`),
  );
  return readStackConfig().postgresAt;
}

test("one run may reach Postgres at another address than in the stack's file", () => {
  expect(read()).toBeUndefined();
  vi.stubEnv(POSTGRES_AT_VARIABLE, "127.0.0.1:20007");
  expect(read()).toEqual({ host: "127.0.0.1", port: 20_007 });
  const written = { postgresAt: '{"host":"10.8.0.9","port":5432}' };
  expect(read(written)).toEqual({ host: "127.0.0.1", port: 20_007 });
  vi.stubEnv(POSTGRES_AT_VARIABLE, undefined);
  expect(read(written)).toEqual({ host: "10.8.0.9", port: 5432 });
});

test("an invalid address is rejected like any other setting", () => {
  vi.stubEnv(POSTGRES_AT_VARIABLE, "somewhere");
  expect(() => read()).toThrow("hearth:postgresAt.host must be a host");
});
