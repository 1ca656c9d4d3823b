import type { FastifyInstance, FastifyRequest } from "fastify";
import { Failure } from "../../../core/failure.ts";

/** In bytes, with the files: an image takes many times its size until it is sent, and the supervisor has little memory. */
export const MAX_FORM = 3 * 1024 * 1024;
/** Of the forms that are being answered: for example one with 1.5 MB of images to four models. */
const MAX_AT_ONCE = 2 * MAX_FORM;
/** Forms without images are never in the way. */
const SMALL = 64 * 1024;

class FormFailure extends Failure {
  readonly statusCode: number;

  constructor(sentence: string, statusCode: number) {
    super(sentence);
    this.name = "FormFailure";
    this.statusCode = statusCode;
  }
}

/** Bodies of the routes of `scope` may be forms with files; each is a FormData. Forms of other pages have no files. */
export function acceptFiles(scope: FastifyInstance): void {
  limitMemory(scope);
  scope.addContentTypeParser(
    "multipart/form-data",
    { parseAs: "buffer", bodyLimit: MAX_FORM },
    async ({ headers }: FastifyRequest, body: Buffer) => {
      const type = headers["content-type"] ?? "";
      const sent = new Response(new Uint8Array(body), {
        headers: { "content-type": type },
      });
      return sent.formData().catch(() => {
        throw new FormFailure("The form is damaged: send it again.", 400);
      });
    },
  );
  scope.setErrorHandler((error) => {
    const { statusCode } = error as { readonly statusCode?: unknown };
    throw statusCode === 413
      ? new FormFailure(
          `The form is larger than ${MAX_FORM / 1024 / 1024} MB: choose fewer or smaller images.`,
          413,
        )
      : error;
  });
}

/** Rejects a large form while others fill the memory, before it is read. */
function limitMemory(scope: FastifyInstance): void {
  let taken = 0;
  scope.addHook("preParsing", async ({ headers }, reply) => {
    const bytes = Math.min(MAX_FORM, Number(headers["content-length"] ?? 0));
    const isStreamed = headers["transfer-encoding"] !== undefined;
    const needed = isStreamed ? MAX_FORM : bytes;
    if (needed <= SMALL || reply.raw.destroyed) {
      return;
    }
    if (taken + needed > MAX_AT_ONCE) {
      throw new FormFailure(
        "The images of other prompts fill the memory of the playground: wait until their answers end, or choose smaller images.",
        429,
      );
    }
    taken += needed;
    reply.raw.once("close", () => {
      taken -= needed;
    });
  });
}

/** The form of a request, which does not keep it: an answer may take minutes. */
export function takeForm(request: FastifyRequest): FormData {
  const { body } = request;
  request.body = null;
  return body instanceof FormData ? body : new FormData();
}
