import type { FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import type { Failure } from "../../core/failure.ts";
import { CouchRefusal, NoAnswer } from "../../supervisor/vaults/couch.ts";
import {
  InvalidVaultInput,
  NoSuchVault,
} from "../../supervisor/vaults/vault-names.ts";
import { sendMistakes, sendResult } from "./send-error.ts";

/** Acts on a valid body; answers 400 to any other. */
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
  return sendMistakes(reply, parsed.error);
}

/** Answers with the result of `act`, or with the message of its Failure. */
export function answering(
  reply: FastifyReply,
  act: () => Promise<unknown>,
): Promise<FastifyReply> {
  return sendResult(reply, statusOfNotesFailure, act);
}

/** The HTTP status of a Failure of the vaults; most say that their state does not allow an action. */
export function statusOfNotesFailure(error: Failure): number {
  if (error instanceof NoSuchVault) {
    return 404;
  }
  if (error instanceof InvalidVaultInput) {
    return 400;
  }
  return error instanceof NoAnswer || error instanceof CouchRefusal ? 502 : 409;
}
