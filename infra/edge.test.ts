import { expect, test } from "vitest";
import { listenersOn } from "../scripts/host-checks/needs.ts";
import { rightConfig } from "../test/infra/stack-config.ts";
import { buildCaddyfile } from "./caddyfile.ts";
import { buildEdgeArgs } from "./components/edge.ts";
import { buildSupervisorArgs } from "./components/supervisor.ts";
import { buildTlsEndpointArgs } from "./components/tls-endpoint.ts";
import { readConfig, type HearthConfig } from "./config.ts";
import { expectedCertificates } from "../test/infra/expected-inputs.ts";
import type { Hosts } from "./hosts.ts";
import { supervisorAddresses } from "./outputs.ts";

function readRight(
  edge: object,
  more: Readonly<Record<string, string>> = {},
): HearthConfig {
  const read = readConfig({
    values: { ...rightConfig, ...more, edge: JSON.stringify(edge) },
    isSecret: () => true,
  });
  if (!read.ok) throw new Error(read.errors.join());
  return read.config;
}

/** Without their providers, which nothing here asks. */
function hostsOf(config: HearthConfig): Hosts {
  return {
    a: { name: "a", ...config.hosts.a },
    b: { name: "b", ...config.hosts.b },
  } as unknown as Hosts;
}

const certificates = await expectedCertificates();
const certificate = {
  edgeCertificate: "-----BEGIN CERTIFICATE-----\n…",
  edgeKey: "-----BEGIN PRIVATE KEY-----\n…",
};
const names = {
  hostname: "hearth.example.org",
  notesHostname: "notes.example.org",
};

test("at a public address, nothing but https is published, and nothing else is named to people", () => {
  const config = readRight(
    { tls: "acme", ...names, email: "you@example.org" },
    {
      hosts: JSON.stringify({
        ...JSON.parse(rightConfig["hosts"] ?? ""),
        b: {
          docker: "ssh://root@192.168.1.11",
          address: "10.8.0.2",
          publish: ["192.168.1.11", "203.0.113.5"],
        },
      }),
    },
  );
  const hosts = hostsOf(config);
  const published = [
    ...buildEdgeArgs(config, certificates, hosts, hosts.b).ports,
    ...buildTlsEndpointArgs(config, certificates, hosts, hosts.b).ports,
  ];
  expect(published.filter(({ address }) => address === "203.0.113.5")).toEqual([
    { address: "203.0.113.5", port: 443 },
  ]);
  expect(
    listenersOn("b", config).filter(({ address }) => address === "203.0.113.5"),
  ).toMatchObject([{ port: 443 }]);
  expect(supervisorAddresses(config, "b")).toEqual([
    "https://192.168.1.11:4443",
  ]);
});

test("a host name of the notes alone is published on 443, looked at before an up, and its certificate watched", () => {
  const config = readRight({
    tls: "acme",
    notesHostname: "notes.example.org",
    email: "you@example.org",
  });
  const hosts = hostsOf(config);
  expect(
    buildEdgeArgs(config, certificates, hosts, hosts.b).ports,
  ).toContainEqual({
    address: "192.168.1.11",
    port: 443,
  });
  expect(
    buildSupervisorArgs(config, certificates, hosts, hosts.a).environment,
  ).toHaveProperty("EDGE_URL", "https://notes.example.org");
  expect(listenersOn("b", config)).toContainEqual({
    service: "the edge",
    address: "192.168.1.11",
    port: 443,
  });
});

test("the operator's own certificate is two files, the key readable by nobody but the edge", () => {
  const config = readRight({ tls: "files", ...names }, certificate);
  const hosts = hostsOf(config);
  const { files, user } = buildEdgeArgs(config, certificates, hosts, hosts.a);
  expect(files.map(({ path, permissions }) => [path, permissions])).toEqual([
    ["/etc/caddy/Caddyfile", "0444"],
    ["/run/hearth/ca.crt", "0444"],
    ["/run/hearth/edge.crt", "0444"],
    ["/run/hearth/edge.key", "0400"],
  ]);
  expect(user).toBeUndefined();
});

test.each([
  ["files", "tls /run/hearth/edge.crt /run/hearth/edge.key"],
  ["internal", "tls internal"],
  ["acme", "tls you@example.org"],
])("with tls %s both names are served by %s", (tls, line) => {
  const config = readRight(
    { tls, ...names, email: "you@example.org" },
    certificate,
  );
  const hosts = hostsOf(config);
  for (const host of [hosts.a, hosts.b]) {
    const [gateway, notes] = sitesOf(buildCaddyfile(config, hosts, host));
    expect(gateway).toContain(`https://hearth.example.org {\n\t${line}\n`);
    expect(gateway).toContain("reverse_proxy gateway:4001");
    expect(notes).toContain(`https://notes.example.org {\n\t${line}\n`);
    expect(notes).toMatch(/reverse_proxy (notes:5984|10\.8\.0\.1:6984)/);
  }
});

/** What a Caddyfile has for each name with a certificate. */
function sitesOf(caddyfile: string): readonly string[] {
  return caddyfile.split(/^(?=https:)/m).slice(1);
}
