import type { FastifyReply } from "fastify";

/** Answers an error in the shape of all errors: {error: {message, code}}. */
export function sendError(
  reply: FastifyReply,
  status: number,
  message: string,
): FastifyReply {
  return reply.code(status).send({ error: { message, code: String(status) } });
}
