import type { FastifyReply } from "fastify";

/** Answers an error in the shape of all errors: {error: {message, code}}. */
export function refuse(
  reply: FastifyReply,
  status: number,
  message: string,
): FastifyReply {
  return reply.code(status).send({ error: { message, code: String(status) } });
}

/** "there is no check "gatway"; there are gateway, postgres." */
export function noSuch(
  what: string,
  name: string,
  known: readonly string[],
): string {
  return known.length === 0
    ? `there is no ${what} "${name}", nor any other.`
    : `there is no ${what} "${name}"; there are ${known.join(", ")}.`;
}
