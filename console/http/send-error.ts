import type { FastifyReply } from "fastify";
import type { z } from "zod";
import { Failure } from "../../core/failure.ts";

/** Answers an error in the shape of all errors: {error: {message, code}}. */
export function sendError(
  reply: FastifyReply,
  status: number,
  message: string,
): FastifyReply {
  return reply.code(status).send({ error: { message, code: String(status) } });
}

/** Answers with the result of `act`, or with the message of its Failure. */
export async function sendResult(
  reply: FastifyReply,
  statusOf: (error: Failure) => number,
  act: () => unknown,
): Promise<FastifyReply> {
  try {
    return await reply.send(await act());
  } catch (error) {
    if (!(error instanceof Failure)) {
      throw error;
    }
    return sendError(reply, statusOf(error), error.sentences.join(" "));
  }
}

/** Answers 400 with a sentence for each mistake, which names the field that the command has an option for. */
export function sendMistakes(
  reply: FastifyReply,
  { issues }: z.ZodError,
): FastifyReply {
  const sentences = issues.map(({ path, message }) => {
    const field = path.filter((key) => typeof key === "string").join(".");
    return `${field || "body"}: ${message}.`;
  });
  // Each of several items may have the same mistake.
  return sendError(reply, 400, [...new Set(sentences)].join(" "));
}
