/** Memory limits of the containers for which there is no setting, in MiB. */
export const MEMORY_MIB = {
  caddy: 128,
  couchdb: 1024,
  socketProxy: 64,
} as const;
