import type * as docker from "@pulumi/docker";
import * as pulumi from "@pulumi/pulumi";
import { buildCaddyfile } from "../caddyfile.ts";
import { imageReferenceOf, servesHttps, type HearthConfig } from "../config.ts";
import type { ContainerSpec, UploadedFile } from "../container.ts";
import { networkName, ports, type Host, type Hosts } from "../hosts.ts";
import { isPrivate } from "../private-addresses.ts";
import { keepVolume, placeContainer, pullImage } from "./placed.ts";

/** What people and devices talk to: one address for both gateways and the notes, on each host. */
export class Edge extends pulumi.ComponentResource {
  readonly container: docker.Container;

  constructor(
    name: string,
    config: HearthConfig,
    hosts: Hosts,
    host: Host,
    dependsOn: readonly pulumi.Resource[],
  ) {
    super("hearth:edge:Edge", name);
    const certificates = keepVolume(
      `${name}-certificates`,
      volumeName,
      host,
      this,
    );
    const image = pullImage(
      `${name}-image`,
      imageReferenceOf(config, "caddy"),
      host,
      this,
    );
    this.container = placeContainer(
      name,
      buildEdgeArgs(config, hosts, host),
      image.imageId,
      host,
      { parent: this, dependsOn: [certificates, ...dependsOn] },
    );
    this.registerOutputs({});
  }
}

const volumeName = "hearth-certificates";
const healthPort = 2020;

export function buildEdgeArgs(
  config: HearthConfig,
  hosts: Hosts,
  host: Host,
): ContainerSpec {
  const published = (port: number, addresses: readonly string[]) =>
    [...new Set(addresses)].map((address) => ({ address, port }));
  const inside = host.publish.filter(isPrivate);
  return {
    name: "hearth-edge",
    command: [
      "caddy",
      "run",
      "--config",
      "/etc/caddy/Caddyfile",
      "--adapter",
      "caddyfile",
    ],
    environment: {},
    files: [
      {
        path: "/etc/caddy/Caddyfile",
        content: buildCaddyfile(config, hosts, host, healthPort),
        permissions: "0444",
      },
      ...certificateFiles(config),
    ],
    ports: [
      ...published(ports.edge, inside),
      // The other host's edge comes here for the notes.
      ...published(
        ports.notes,
        host.name === config.placement.notes
          ? [...inside, host.address]
          : inside,
      ),
      ...(servesHttps(config) ? published(ports.edgeTls, host.publish) : []),
    ],
    volumes: [{ source: volumeName, path: "/data" }],
    networks: [{ name: networkName, aliases: ["edge"] }],
    memoryMiB: 128,
    // The binary carries it as a file capability and does not start where it cannot have it.
    capabilities: ["CAP_NET_BIND_SERVICE"],
    health: {
      test: [
        "CMD",
        "wget",
        "-q",
        "-O",
        "/dev/null",
        `http://127.0.0.1:${healthPort}/`,
      ],
      interval: "10s",
      timeout: "5s",
      startPeriod: "5s",
      retries: 3,
    },
    graceSeconds: 30,
  };
}

function certificateFiles(config: HearthConfig): readonly UploadedFile[] {
  if (config.edge.tls !== "files") return [];
  return [
    {
      path: "/run/hearth/edge.crt",
      content: config.edgeCertificate ?? "",
      permissions: "0444",
    },
    {
      path: "/run/hearth/edge.key",
      content: pulumi.secret(config.edgeKey ?? ""),
      permissions: "0400",
    },
  ];
}
