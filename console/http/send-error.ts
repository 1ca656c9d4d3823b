import type { FastifyReply } from "fastify";

/** Answers an error in the shape of all errors: {error: {message, code}}. */
export function sendError(
  reply: FastifyReply,
  status: number,
  message: string,
): FastifyReply {
  return reply.code(status).send({ error: { message, code: String(status) } });
}

/** "check "gatway" not found; available: gateway, postgres." */
export function notFound(
  what: string,
  name: string,
  known: readonly string[],
): string {
  return known.length === 0
    ? `${what} "${name}" not found.`
    : `${what} "${name}" not found; available: ${known.join(", ")}.`;
}
