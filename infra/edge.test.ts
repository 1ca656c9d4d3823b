import { expect, test } from "vitest";
import { listenersOn } from "../scripts/host-checks/needs.ts";
import { rightConfig } from "../test/infra/stack-config.ts";
import { buildEdgeArgs } from "./components/edge.ts";
import { buildSupervisorArgs } from "./components/supervisor.ts";
import { readConfig } from "./config.ts";
import type { Hosts } from "./hosts.ts";

function readRight(edge: object) {
  const read = readConfig({
    values: { ...rightConfig, edge: JSON.stringify(edge) },
    isSecret: () => true,
  });
  if (!read.ok) throw new Error(read.errors.join());
  return read.config;
}

test("a host name of the notes alone is published on 443, looked at before an up, and its certificate watched", () => {
  const config = readRight({
    tls: "acme",
    notesHostname: "notes.example.org",
    email: "you@example.org",
  });
  // Without their providers, which nothing here asks.
  const hosts = {
    a: { name: "a", ...config.hosts.a },
    b: { name: "b", ...config.hosts.b },
  } as unknown as Hosts;
  expect(buildEdgeArgs(config, hosts, hosts.b).ports).toContainEqual({
    address: "192.168.1.11",
    port: 443,
  });
  expect(
    buildSupervisorArgs(config, hosts, hosts.a).environment,
  ).toHaveProperty("EDGE_URL", "https://notes.example.org");
  expect(listenersOn("b", config)).toContainEqual({
    service: "the edge",
    address: "192.168.1.11",
    port: 443,
  });
});
