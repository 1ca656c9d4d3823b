import type { FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import { Failure } from "../../core/failure.ts";
import { CouchRefusal, NoAnswer } from "../../supervisor/vaults/couch.ts";
import { NoSuchVault } from "../../supervisor/vaults/vault-names.ts";
import { refuse } from "./refuse.ts";

/** Acts on a body of the expected shape; anything else is a 400. */
export async function withBody<T extends z.ZodType>(
  request: FastifyRequest,
  reply: FastifyReply,
  schema: T,
  act: (body: z.output<T>) => Promise<unknown>,
): Promise<FastifyReply> {
  const parsed = schema.safeParse(request.body ?? {});
  if (parsed.success) {
    return answering(reply, () => act(parsed.data));
  }
  return refuse(
    reply,
    400,
    parsed.error.issues
      .map(({ path, message }) => {
        const [first = "body"] = path.filter((key) => typeof key === "string");
        return `${first}: ${message}.`;
      })
      .join(" "),
  );
}

/** Answers what the act returns, or its Failure in words. */
export async function answering(
  reply: FastifyReply,
  act: () => Promise<unknown>,
): Promise<FastifyReply> {
  try {
    return await reply.send(await act());
  } catch (error) {
    if (!(error instanceof Failure)) {
      throw error;
    }
    return refuse(
      reply,
      statusOfNotesFailure(error),
      error.sentences.join(" "),
    );
  }
}

/** The HTTP status of what the vaults' acts refuse. */
export function statusOfNotesFailure(error: Failure): number {
  if (error instanceof NoSuchVault) {
    return 404;
  }
  return error instanceof NoAnswer || error instanceof CouchRefusal ? 502 : 400;
}
