import type { FastifyRequest } from "fastify";

/** A name or address with an optional port; anything else would run as shell code in an example. */
const HOST = /^([\w.-]+|\[[\da-fA-F:.]+\])(:\d{1,5})?$/;

/** The address by which the reader reached this gateway, for examples to paste. */
export function ownAddress({
  protocol,
  host,
}: Pick<FastifyRequest, "protocol" | "host">): string {
  return HOST.test(host) ? `${protocol}://${host}` : "http://localhost:4000";
}

/** Whether only programs of this machine reach an address. */
export function isLoopback(address: string): boolean {
  const { hostname } = new URL(address);
  return /^(localhost|127\..*|\[::1\])$/.test(hostname);
}
