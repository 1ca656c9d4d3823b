import type * as docker from "@pulumi/docker";
import * as pulumi from "@pulumi/pulumi";
import { imageReferenceOf, type HearthConfig } from "../config.ts";
import { httpHealthTest, type ContainerSpec } from "../container.ts";
import { buildCouchIni } from "../couchdb-ini.ts";
import { networkName, ports, type Host } from "../hosts.ts";
import { keepVolume, placeContainer, pullImage } from "./placed.ts";

/** The notes store. The image of `notes/` can take CouchDB's place: it reads the same ini at the same path. */
export class CouchServer extends pulumi.ComponentResource {
  readonly container: docker.Container;

  constructor(name: string, config: HearthConfig, host: Host) {
    super("hearth:data:CouchServer", name);
    const volume =
      config.notesData === "volume"
        ? [keepVolume(`${name}-data`, volumeName, host, this)]
        : [];
    const image = pullImage(
      `${name}-image`,
      imageReferenceOf(config, "couchdb"),
      host,
      this,
    );
    this.container = placeContainer(
      name,
      buildCouchArgs(config),
      image.imageId,
      host,
      {
        parent: this,
        dependsOn: volume,
        // The admin's password is rotated over HTTP in the running server, which must not be replaced for it; a container made
        // for another reason carries the new one. What else changes in the ini is told by `contents` below.
        ignoreChanges: ["uploads[0].content"],
      },
    );
    this.registerOutputs({});
  }
}

const volumeName = "hearth-notes";

export function buildCouchArgs(config: HearthConfig): ContainerSpec {
  const ini = (adminPassword: string) =>
    buildCouchIni({
      uuid: config.notesUuid,
      cookieSecret: config.notesCookieSecret,
      adminPassword,
    });
  return {
    name: "hearth-couchdb",
    contents: ini(""),
    // CouchDB's own user with root's group, so that it can read the upload; as root its entrypoint would make 0600 files 0644.
    user: "5984:0",
    environment: {},
    files: [
      {
        // Not the last of the chain: that one is written by the server.
        path: "/opt/couchdb/etc/local.d/10-hearth.ini",
        content: pulumi.secret(ini(config.notesAdminPassword)),
        permissions: "0440",
      },
    ],
    // Nobody comes to it but by the edge, which says who is asking.
    ports: [],
    volumes: [
      {
        source: config.notesData === "volume" ? volumeName : config.notesData,
        path: "/opt/couchdb/data",
      },
    ],
    networks: [{ name: networkName, aliases: ["notes"] }],
    memoryMiB: 1024,
    reservationMiB: 512,
    // Erlang sizes its tables from it: unlimited, it takes 2.2 GB at boot and dies of its limit. A host may allow less.
    noFile: config.notesOpenFiles,
    capabilities: [],
    health: {
      // There is no curl inside. Without credentials: a stale password would lock this address out.
      test: httpHealthTest(ports.notes, "/_up"),
      interval: "30s",
      timeout: "10s",
      startPeriod: "20s",
      retries: 3,
    },
    graceSeconds: 30,
  };
}
