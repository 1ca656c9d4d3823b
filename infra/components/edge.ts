import type * as docker from "@pulumi/docker";
import * as pulumi from "@pulumi/pulumi";
import { buildCaddyfile, type EdgeRoutes } from "../caddyfile.ts";
import { authorityUpload } from "../certificates.ts";
import { servesHttps } from "../config/listeners.ts";
import type { ContainerSpec, UploadedFile } from "../container.ts";
import { publishedPorts, type Host } from "../hosts.ts";
import { volumeName } from "../names.ts";
import { isPrivateAddress } from "../../core/network-addresses.ts";
import { caddySpec } from "./caddy.ts";
import { keepVolume, placeContainer, pullImage } from "./placed.ts";

export interface EdgeArgs extends EdgeRoutes {
  /** The host it runs on, with the addresses for users and devices. */
  readonly host: Host;
  /** Reference of Caddy's image. */
  readonly image: string;
  /** With tls "files": PEM. */
  readonly certificate?: pulumi.Input<string> | undefined;
  readonly key?: pulumi.Input<string> | undefined;
  /** Authority of the other host's endpoint; PEM. */
  readonly authority: pulumi.Input<string>;
  /** The services behind it, created first. */
  readonly upstreams: readonly pulumi.Resource[];
}

/** The entry point for users and devices: one address per host for both gateways and the notes. */
export class Edge extends pulumi.ComponentResource {
  readonly container: docker.Container;

  constructor(
    name: string,
    args: EdgeArgs,
    opts?: pulumi.ComponentResourceOptions,
  ) {
    super("hearth:edge:Edge", name, {}, opts);
    const volume = keepVolume(
      `${name}-certificates`,
      "certificates",
      args.host,
      this,
    );
    const image = pullImage(`${name}-image`, args.image, args.host, this);
    this.container = placeContainer(
      name,
      buildEdgeArgs(args),
      image,
      args.host,
      { parent: this, dependsOn: [volume, ...args.upstreams] },
    );
    this.registerOutputs({ container: this.container });
  }
}

function buildEdgeArgs(args: EdgeArgs): ContainerSpec {
  const { engine, publish } = args.host;
  const published = (
    port: "edge" | "edgeTls" | "notes",
    addresses: readonly string[],
  ) => publishedPorts(args.host, port, [...new Set(addresses)]);
  const inside = publish.filter(isPrivateAddress);
  return caddySpec(
    {
      alias: "edge",
      engine,
      caddyfile: buildCaddyfile(args),
      files: [authorityUpload(args.authority), ...certificateFiles(args)],
    },
    {
      ports: [
        ...published("edge", inside),
        ...published("notes", inside),
        ...(servesHttps({ edge: args.https })
          ? published("edgeTls", publish)
          : []),
      ],
      volumes: [
        { source: volumeName(args.host.engine, "certificates"), path: "/data" },
      ],
    },
  );
}

function certificateFiles({
  https,
  certificate = "",
  key = "",
}: EdgeArgs): readonly UploadedFile[] {
  if (https.tls !== "files") {
    return [];
  }
  return [
    {
      path: "/run/hearth/edge.crt",
      content: certificate,
      permissions: "0444",
    },
    { path: "/run/hearth/edge.key", content: key, permissions: "0400" },
  ];
}
