import type * as docker from "@pulumi/docker";
import * as pulumi from "@pulumi/pulumi";
import { buildTlsCaddyfile } from "../caddyfile.ts";
import {
  serverUploads,
  tlsEndpointName,
  type Certificates,
} from "../certificates.ts";
import { imageReferenceOf, type HearthConfig } from "../config.ts";
import type { ContainerSpec } from "../container.ts";
import { everyAddress, ports, type Host, type Hosts } from "../hosts.ts";
import { caddySpec } from "./caddy.ts";
import { placeContainer, pullImage } from "./placed.ts";

/**
 * Where the other host reaches this one's gateway, notes and supervisor, and browsers the console: by TLS alone, with a
 * certificate of the stack's authority. Not a part of the edge, which a renewal would replace: callers of the edge would notice.
 */
export class TlsEndpoint extends pulumi.ComponentResource {
  readonly container: docker.Container;

  constructor(
    name: string,
    config: HearthConfig,
    certificates: Certificates,
    hosts: Hosts,
    host: Host,
  ) {
    super("hearth:edge:TlsEndpoint", name);
    const image = pullImage(
      `${name}-image`,
      imageReferenceOf(config, "caddy"),
      host,
      this,
    );
    this.container = placeContainer(
      name,
      buildTlsEndpointArgs(config, certificates, hosts, host),
      image.imageId,
      host,
      { parent: this },
    );
    this.registerOutputs({});
  }
}

export function buildTlsEndpointArgs(
  config: HearthConfig,
  certificates: Certificates,
  hosts: Hosts,
  host: Host,
): ContainerSpec {
  const published = (port: number, addresses: readonly string[]) =>
    addresses.map((address) => ({ address, port }));
  return caddySpec(
    {
      alias: tlsEndpointName,
      caddyfile: buildTlsCaddyfile(config, hosts, host),
      files: serverUploads(
        tlsEndpointName,
        certificates.tls[host.name],
        "0400",
      ),
    },
    {
      ports: [
        ...published(ports.gatewayTls, [host.address]),
        ...(host.name === config.placement.notes
          ? published(ports.notesTls, [host.address])
          : []),
        ...published(ports.console, everyAddress(host)),
      ],
      volumes: [],
    },
  );
}
