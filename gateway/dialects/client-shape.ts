import type { CallBody } from "../calls/body.ts";
import type { CallError } from "../http/errors.ts";
import type { Endpoint, StreamPiece } from "../providers/wire.ts";
import type { PricedDeployment } from "../routing/catalog.ts";

/**
 * A client's API that can be translated to chat. Pure. Where the provider has the endpoint itself
 * (`wire.speaks(shape.endpoint, deployment)`), only the errors are needed: body, answer and stream pass unchanged.
 */
export interface ClientShape {
  readonly endpoint: Endpoint;
  /** The chat body for a deployment. Throws {@link CallError} `invalid_request` naming the invalid field. */
  chatBody(body: CallBody, deployment: PricedDeployment): ChatBody;
  /** A whole answer of OpenAI's chat shape in the client's; other bytes pass unchanged. */
  answer(bytes: Buffer, body: CallBody, answerId?: string): Buffer;
  /**
   * `answerId`: instead of the provider's id of its answer, which some servers give to each. `inputTokens`: an estimate, for a start
   * that has them before the provider reports its usage.
   */
  stream(body: CallBody, answerId?: string, inputTokens?: number): ClientStream;
  errorBody(error: CallError): unknown;
}

export interface ChatBody {
  readonly body: CallBody;
  /** Parameters that chat does not support, by path: drop them, or reject the call naming them. */
  readonly lacks: readonly string[];
}

/** Translates chat pieces to the client's, one at a time. */
export interface ClientStream {
  /** Takes every piece of the provider's stream, `usage_only` and `done` too. */
  push(piece: StreamPiece): readonly StreamPiece[];
  /** The error for a stream that broke off; nothing follows it. */
  fail(error: CallError): readonly StreamPiece[];
}
