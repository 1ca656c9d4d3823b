import type { CallBody } from "../calls/body.ts";
import type { CallError } from "../http/errors.ts";
import type { Endpoint, StreamPiece } from "../providers/wire.ts";
import type { PricedDeployment } from "../routing/catalog.ts";

/**
 * A shape that clients speak and that can be carried through chat. Pure. Where the provider has the endpoint itself
 * (`wire.speaks(shape.endpoint, deployment)`), nothing here is needed but the errors: body, answer and stream pass.
 */
export interface ClientShape {
  readonly endpoint: Endpoint;
  /** The chat body for a deployment. Throws {@link CallError} `invalid_request` naming the field that is wrong. */
  chatBody(body: CallBody, deployment: PricedDeployment): ChatBody;
  /** A whole answer of OpenAI's chat shape as the client's; other bytes pass. */
  answer(bytes: Buffer, body: CallBody): Buffer;
  stream(body: CallBody): ClientStream;
  errorBody(error: CallError): unknown;
}

export interface ChatBody {
  readonly body: CallBody;
  /** What has no place in a chat body, by path: drop it, or answer 400 naming it. */
  readonly lacks: readonly string[];
}

/** Turns chat pieces into the client's, one at a time. */
export interface ClientStream {
  /** Takes every piece of the provider's stream, `usage_only` and `done` too. */
  push(piece: StreamPiece): readonly StreamPiece[];
  /** What the client is told when the stream broke off; nothing follows it. */
  fail(error: CallError): readonly StreamPiece[];
}
