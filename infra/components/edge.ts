import type * as docker from "@pulumi/docker";
import * as pulumi from "@pulumi/pulumi";
import { buildCaddyfile } from "../caddyfile.ts";
import { authorityUpload, type Certificates } from "../certificates.ts";
import { imageReferenceOf, servesHttps, type HearthConfig } from "../config.ts";
import type { ContainerSpec, UploadedFile } from "../container.ts";
import { ports, type Host, type Hosts } from "../hosts.ts";
import { isPrivate } from "../private-addresses.ts";
import { caddySpec } from "./caddy.ts";
import { keepVolume, placeContainer, pullImage } from "./placed.ts";

/** What people and devices talk to: one address for both gateways and the notes, on each host. */
export class Edge extends pulumi.ComponentResource {
  readonly container: docker.Container;

  constructor(
    name: string,
    config: HearthConfig,
    certificates: Certificates,
    hosts: Hosts,
    host: Host,
    dependsOn: readonly pulumi.Resource[],
  ) {
    super("hearth:edge:Edge", name);
    const volume = keepVolume(`${name}-certificates`, volumeName, host, this);
    const image = pullImage(
      `${name}-image`,
      imageReferenceOf(config, "caddy"),
      host,
      this,
    );
    this.container = placeContainer(
      name,
      buildEdgeArgs(config, certificates, hosts, host),
      image.imageId,
      host,
      { parent: this, dependsOn: [volume, ...dependsOn] },
    );
    this.registerOutputs({});
  }
}

const volumeName = "hearth-certificates";

export function buildEdgeArgs(
  config: HearthConfig,
  certificates: Certificates,
  hosts: Hosts,
  host: Host,
): ContainerSpec {
  const published = (port: number, addresses: readonly string[]) =>
    [...new Set(addresses)].map((address) => ({ address, port }));
  const inside = host.publish.filter(isPrivate);
  return caddySpec(
    {
      alias: "edge",
      caddyfile: buildCaddyfile(config, hosts, host),
      files: [authorityUpload(certificates), ...certificateFiles(config)],
    },
    {
      ports: [
        ...published(ports.edge, inside),
        ...published(ports.notes, inside),
        ...(servesHttps(config) ? published(ports.edgeTls, host.publish) : []),
      ],
      volumes: [{ source: volumeName, path: "/data" }],
    },
  );
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
