/** Third-party images pulled from a registry. */
export type PulledImage =
  "postgres" | "redis" | "couchdb" | "caddy" | "haproxy" | "nodeBase";
/** Images built from this repository, based on `nodeBase`. */
export type BuiltImage = "gateway" | "supervisor" | "notes";

/**
 * Tag for people, digest for Docker: the digest of the multi-architecture index, valid for amd64 and arm64.
 * Updated by a reviewed change of this file. Without a digest, a later `up` could run a different image.
 */
export const pinnedImages: Readonly<Record<PulledImage, string>> = {
  postgres:
    "docker.io/library/postgres:18.6-trixie@sha256:4ef4dbc939d61acea57712655ddb4b4ab27419c913f94cca0cd57cb3ea3c2280",
  redis:
    "docker.io/library/redis:8@sha256:298e5b3bc566bade82f46ad5511777a4a07a294097ce16ada2f6a42be5239df5",
  couchdb:
    "docker.io/library/couchdb:3.5@sha256:9ea24cbd76522fe845d1c32c7fd1dcfc8a3ba73dcc4817d62f8a7f7f1dfaffe3",
  caddy:
    "docker.io/library/caddy:2.10.2-alpine@sha256:4c6e91c6ed0e2fa03efd5b44747b625fec79bc9cd06ac5235a779726618e530d",
  haproxy:
    "docker.io/library/haproxy:3.2@sha256:e2b397cdbd612221cf79dec325690139d00a78b4ce4eae065530fbc81e1f6192",
  nodeBase:
    "docker.io/library/node:24.21.0-trixie-slim@sha256:8ec5d7557396cfe32d21c3f9c13072355ceab22b584578ca4bb28af31120cffe",
};
