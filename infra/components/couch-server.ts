import type * as docker from "@pulumi/docker";
import * as pulumi from "@pulumi/pulumi";
import { httpHealthTest, type ContainerSpec } from "../container.ts";
import { ports, type Host } from "../hosts.ts";
import { containerName, networkName, volumeName } from "../names.ts";
import { containerIni } from "./couch-ini.ts";
import { keepVolume, placeContainer, pullImage } from "./placed.ts";
import { MEMORY_MIB } from "../config/memory-limits.ts";

export interface CouchServerArgs {
  /** Where it runs. */
  readonly host: Host;
  /** Reference of CouchDB's image, or of the image of `notes/`, which reads the same ini at the same path. */
  readonly image: string;
  /** 32 hexadecimal digits that never change: clients derive their checkpoints from them. */
  readonly uuid: string;
  /** Signs session cookies. */
  readonly cookieSecret: pulumi.Input<string>;
  /** Of the user `admin`. Rotated in the running server; a new container starts with the new one. */
  readonly adminPassword: pulumi.Input<string>;
  /** "volume", or a directory of the host that belongs to user 5984. */
  readonly data: string;
  /** Maximum number of file descriptors. */
  readonly openFiles: number;
}

/** The notes store. */
export class CouchServer extends pulumi.ComponentResource {
  readonly container: docker.Container;

  constructor(
    name: string,
    args: CouchServerArgs,
    opts?: pulumi.ComponentResourceOptions,
  ) {
    super("hearth:data:CouchServer", name, {}, opts);
    const volume =
      args.data === "volume"
        ? [keepVolume(`${name}-data`, "notes", args.host, this)]
        : [];
    const image = pullImage(`${name}-image`, args.image, args.host, this);
    this.container = placeContainer(
      name,
      buildCouchArgs(args),
      image,
      args.host,
      {
        parent: this,
        dependsOn: volume,
        // The admin's password is rotated over HTTP in the running server, which must not be replaced for it; a container created
        // for another reason starts with the new one. Other changes of the ini are detected by `contents` below.
        ignoreChanges: ["uploads[0].content"],
      },
    );
    this.registerOutputs({ container: this.container });
  }
}

function buildCouchArgs(args: CouchServerArgs): ContainerSpec {
  const ini = (adminPassword: pulumi.Input<string>) =>
    pulumi
      .all([args.cookieSecret, adminPassword])
      .apply(([cookieSecret, password]) =>
        containerIni({
          uuid: args.uuid,
          cookieSecret,
          adminPassword: password,
        }),
      );
  return {
    name: containerName(args.host.engine, "couchdb"),
    contents: ini(""),
    // CouchDB's own user with root's group, so that it can read the upload; as root, its entrypoint changes 0600 files to 0644.
    user: "5984:0",
    environment: {},
    files: [
      {
        // Not the last file of the chain: the server writes to that one.
        path: "/opt/couchdb/etc/local.d/10-hearth.ini",
        content: ini(args.adminPassword),
        permissions: "0440",
      },
    ],
    // Reachable only through the edge, which passes on the client's address.
    ports: [],
    volumes: [
      {
        source:
          args.data === "volume"
            ? volumeName(args.host.engine, "notes")
            : args.data,
        path: "/opt/couchdb/data",
      },
    ],
    networks: [{ name: networkName(args.host.engine), aliases: ["notes"] }],
    memoryMiB: MEMORY_MIB.couchdb,
    reservationMiB: 512,
    // Erlang sizes its tables from it: unlimited, it allocates 2.2 GB at boot and exceeds the memory limit. A host may allow
    // less.
    noFile: args.openFiles,
    capabilities: [],
    health: {
      // The image has no curl. No credentials: a stale password would lock this address out.
      test: httpHealthTest(ports.notes, "/_up"),
      interval: "30s",
      timeout: "10s",
      startPeriod: "20s",
      retries: 3,
    },
    graceSeconds: 30,
  };
}
