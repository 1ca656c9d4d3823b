import { expect, test } from "vitest";
import { none, registerContainers } from "../test/infra/expected-inputs.ts";
import { listOf } from "../test/infra/registered.ts";
import { validConfig } from "../test/infra/stack-config.ts";
import { makeSelfSigned } from "../test/supervisor/self-signed.ts";
import { readHostSettings } from "./config/config.ts";
import type { HostSettings } from "./config/config-schema.ts";
import { listenersOn } from "./config/listeners.ts";
import { supervisorAddresses } from "./outputs.ts";

function withEdge(
  edge: object,
  more: Readonly<Record<string, string>> = {},
): typeof validConfig {
  // Prebuilt images: none has to be built here.
  const image = `example.org/image:1@sha256:${"0".repeat(64)}`;
  const images = JSON.stringify({ gateway: image, supervisor: image });
  return { ...validConfig, images, ...more, edge: JSON.stringify(edge) };
}

function hostSettings(values: typeof validConfig): HostSettings {
  const read = readHostSettings(values);
  if (!read.ok) {
    throw new Error(read.errors.join());
  }
  return read.config;
}

/** Addresses and ports that a container is published at. */
const publishedBy = ({ inputs }: typeof none) =>
  listOf(inputs["ports"]).map(({ ip, external }) => ({
    address: ip,
    port: external,
  }));

const { cert, key } = makeSelfSigned(new Date(Date.now() + 86_400_000), [
  "*.example.org",
]);
const certificate = { edgeCertificate: cert, edgeKey: key };
const names = {
  hostname: "hearth.example.org",
  notesHostname: "notes.example.org",
};

test("at a public address, only https is published and shown to users", async () => {
  const config = withEdge(
    { tls: "acme", ...names, email: "you@example.org" },
    {
      hosts: JSON.stringify({
        ...JSON.parse(validConfig["hosts"] ?? ""),
        b: {
          docker: "ssh://root@192.168.1.11",
          address: "10.8.0.2",
          publish: ["192.168.1.11", "203.0.113.5"],
        },
      }),
    },
  );
  const containers = await registerContainers(config);
  const settings = hostSettings(config);
  const published = [
    ...publishedBy(containers["edge-b"] ?? none),
    ...publishedBy(containers["tls-b"] ?? none),
  ];
  expect(published.filter(({ address }) => address === "203.0.113.5")).toEqual([
    { address: "203.0.113.5", port: 443 },
  ]);
  expect(
    listenersOn("b", settings).filter(
      ({ address }) => address === "203.0.113.5",
    ),
  ).toMatchObject([{ port: 443 }]);
  expect(supervisorAddresses(settings, "b")).toEqual([
    "https://192.168.1.11:4443",
  ]);
});

test("a host name for the notes only is published on 443, checked before an up, and its certificate watched", async () => {
  const config = withEdge({
    tls: "acme",
    notesHostname: "notes.example.org",
    email: "you@example.org",
  });
  const containers = await registerContainers(config);
  expect(publishedBy(containers["edge-b"] ?? none)).toContainEqual({
    address: "192.168.1.11",
    port: 443,
  });
  expect(containers["supervisor-a"]?.inputs["envs"]).toContain(
    "EDGE_URL=https://notes.example.org",
  );
  expect(listenersOn("b", hostSettings(config))).toContainEqual({
    service: "the edge",
    address: "192.168.1.11",
    port: 443,
    setting: "edgeTls",
  });
});

test("the operator's own certificate is two files, with the key readable only by the edge", async () => {
  const config = withEdge({ tls: "files", ...names }, certificate);
  const { files, inputs } =
    (await registerContainers(config))["edge-a"] ?? none;
  expect(
    Object.entries(files).map(([path, text]) => [path, text.split(" ")[0]]),
  ).toEqual([
    ["/etc/caddy/Caddyfile", "0444"],
    ["/run/hearth/ca.crt", "0444"],
    ["/run/hearth/edge.crt", "0444"],
    ["/run/hearth/edge.key", "0400"],
  ]);
  expect(inputs).not.toHaveProperty("user");
});

test.each([
  ["files", "tls /run/hearth/edge.crt /run/hearth/edge.key"],
  ["internal", "tls internal"],
  ["acme", "tls you@example.org"],
])("with tls %s both names are served by %s", async (tls, line) => {
  const config = withEdge(
    { tls, ...names, email: "you@example.org" },
    certificate,
  );
  const containers = await registerContainers(config);
  for (const edge of ["edge-a", "edge-b"]) {
    const { files } = containers[edge] ?? none;
    const [gateway, notes] = sitesOf(files["/etc/caddy/Caddyfile"] ?? "");
    expect(gateway).toContain(`https://hearth.example.org {\n\t${line}\n`);
    expect(gateway).toContain("reverse_proxy gateway:4001");
    expect(notes).toContain(`https://notes.example.org {\n\t${line}\n`);
    expect(notes).toMatch(/reverse_proxy (notes:5984|10\.8\.0\.1:6984)/);
  }
});

/** The part of a Caddyfile for each name with a certificate. */
function sitesOf(caddyfile: string): readonly string[] {
  return caddyfile.split(/^(?=https:)/m).slice(1);
}
