import { randomUUID } from "node:crypto";
import PouchDB from "pouchdb-core";
import http from "pouchdb-adapter-http";
import memory from "pouchdb-adapter-memory";
import replication from "pouchdb-replication";

PouchDB.plugin(http).plugin(memory).plugin(replication);

export type Device = InstanceType<typeof PouchDB>;

/** Creates a device's local database in memory. */
export function newDevice(): Device {
  return new PouchDB(`device-${randomUUID()}`, { adapter: "memory" });
}

/** Opens a database on the server as a device does. */
export function remote(
  url: string,
  database: string,
  user: { readonly name: string; readonly password: string },
): Device {
  return new PouchDB(`${url}/${database}`, {
    adapter: "http",
    skip_setup: true,
    auth: { username: user.name, password: user.password },
  });
}
