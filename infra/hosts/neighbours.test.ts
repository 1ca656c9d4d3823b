import { expect, test } from "vitest";
import { validConfig } from "../../test/infra/stack-config.ts";
import { settingsBeside } from "./neighbours.ts";

const { hosts = "" } = validConfig;
const shifted = (by: number): unknown => ({
  edge: 4000 + by,
  edgeTls: 443 + by,
  notes: 5984 + by,
  gatewayTls: 4444 + by,
  notesTls: 6984 + by,
  console: 4443 + by,
  postgres: 5432 + by,
  redis: 6379 + by,
});
const portsOf = (settings: Readonly<Record<string, string>>): unknown =>
  JSON.parse(settings["ports"] ?? "");

test("a second stack on the same hosts gets its own prefix and ports, a third one as well", () => {
  const second = settingsBeside([{ hosts }], { hosts }, "Trial_1");
  expect(second["prefix"]).toBe("trial-1");
  expect(portsOf(second)).toEqual(shifted(10_000));
  const third = settingsBeside(
    [{ hosts }, { hosts, ...second }],
    { hosts },
    "trial-1",
  );
  expect(third["prefix"]).toBe("trial-1-2");
  expect(portsOf(third)).toEqual(shifted(20_000));
});

test("one shared host is enough, at the same engine or address", () => {
  const host = (name: string) => ({
    docker: `ssh://root@${name}`,
    address: name,
    publish: [name],
  });
  const on = (a: string, b: string) => ({
    hosts: JSON.stringify({ a: host(a), b: host(b) }),
  });
  const own = on("10.8.0.1", "10.8.0.2");
  expect(settingsBeside([on("10.8.0.3", "10.8.0.4")], own, "trial")).toEqual(
    {},
  );
  expect(
    settingsBeside([on("10.8.0.2", "10.8.0.3")], own, "trial"),
  ).toHaveProperty("ports");
});

test("given settings are kept, and stacks without hosts are no neighbours", () => {
  const given = { hosts, prefix: "own", ports: JSON.stringify({ edge: 4001 }) };
  expect(settingsBeside([{ hosts }], given, "trial")).toEqual({});
  expect(
    settingsBeside([{ runtime: "kubernetes" }], { hosts }, "trial"),
  ).toEqual({});
});
