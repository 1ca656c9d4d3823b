import type * as docker from "@pulumi/docker";
import * as pulumi from "@pulumi/pulumi";
import { buildTlsCaddyfile, type TlsEndpointRoutes } from "../caddyfile.ts";
import {
  serverUploads,
  TLS_ENDPOINT_NAME,
  type ServerCertificate,
} from "../certificates.ts";
import type { ContainerSpec } from "../container.ts";
import { everyAddress, publishedPorts, type Host } from "../hosts.ts";
import { caddySpec } from "./caddy.ts";
import { placeContainer, pullImage } from "./placed.ts";

export interface TlsEndpointArgs extends TlsEndpointRoutes {
  /** Where it runs. */
  readonly host: Host;
  /** Reference of Caddy's image. */
  readonly image: string;
  /** For the host's addresses, of the stack's authority. */
  readonly certificate: ServerCertificate;
}

/**
 * Gives the other host access to this one's gateway, notes and supervisor, and browsers to the console: TLS only, with a
 * certificate of the stack's authority. Separate from the edge, since a renewal replaces the container and would interrupt
 * callers.
 */
export class TlsEndpoint extends pulumi.ComponentResource {
  readonly container: docker.Container;

  constructor(
    name: string,
    args: TlsEndpointArgs,
    opts?: pulumi.ComponentResourceOptions,
  ) {
    super("hearth:edge:TlsEndpoint", name, {}, opts);
    const image = pullImage(`${name}-image`, args.image, args.host, this);
    this.container = placeContainer(
      name,
      buildTlsEndpointArgs(args),
      image,
      args.host,
      { parent: this },
    );
    this.registerOutputs({ container: this.container });
  }
}

function buildTlsEndpointArgs(args: TlsEndpointArgs): ContainerSpec {
  const { host } = args;
  return caddySpec(
    {
      alias: TLS_ENDPOINT_NAME,
      engine: host.engine,
      caddyfile: buildTlsCaddyfile(args),
      files: serverUploads(TLS_ENDPOINT_NAME, args.certificate, "0400"),
    },
    {
      ports: [
        ...publishedPorts(host, "gatewayTls", [host.address]),
        ...(args.hasNotes
          ? publishedPorts(host, "notesTls", [host.address])
          : []),
        ...publishedPorts(host, "console", everyAddress(host)),
      ],
      volumes: [],
    },
  );
}
