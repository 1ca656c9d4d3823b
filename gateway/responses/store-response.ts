import type { CallBody } from "../calls/body.ts";
import type { Call } from "../calls/call.ts";
import { sessionOf } from "../calls/session.ts";
import type { Gateway } from "../gateway.ts";
import { errorInEvent } from "../providers/answered-error.ts";
import {
  isRecord,
  listOf,
  parseRecord,
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { ssePieceText, type StreamPiece } from "../providers/wire.ts";
import { asInput, itemsOf, withIds } from "./items.ts";
import type { ResponseContext } from "./response-context.ts";
import { outputOf, type Content } from "./stored-response.ts";

type Ports = Pick<Gateway, "config" | "log" | "responses">;

/** A call whose response is stored, or continues a stored one. */
type StatefulCall = Call & { readonly responseContext: ResponseContext };

export function isStateful(call: Call): call is StatefulCall {
  return call.responseContext !== null;
}

/** A whole answer as the client gets it, stored before it is sent. Other bytes pass. `modelId`: the deployment that answered. */
export async function storeAnswer(
  ports: Ports,
  call: StatefulCall,
  modelId: string,
  body: Buffer,
): Promise<Buffer> {
  const answered = parseRecord(body.toString("utf8"));
  if (answered?.["object"] !== "response") {
    return body;
  }
  const response = withContext(call.responseContext, answered);
  const isStored = await storeAnswered(ports, call, modelId, response);
  return Buffer.from(JSON.stringify(asStored(response, isStored)));
}

const FINAL = ["response.completed", "response.incomplete"];

/** The events of a response as the client gets them. */
export class StoringStream {
  readonly #call: StatefulCall;
  #final: StreamPiece | null = null;

  constructor(call: StatefulCall) {
    this.#call = call;
  }

  push(pieces: readonly StreamPiece[]): readonly StreamPiece[] {
    const sent = pieces.map((piece) => this.#withContext(piece));
    const { background } = this.#call.responseContext;
    if (background === null) {
      return sent;
    }
    for (const piece of sent) {
      background.events?.record(piece);
      if (piece.kind === "error") {
        background.failed(failureIn(piece));
      }
    }
    return sent;
  }

  /** Stores the response of a stream that was whole; answers its last event, `ending`, as the client gets it. */
  async end(ports: Ports, modelId: string, ending: string): Promise<string> {
    const event = this.#final && parseRecord(this.#final.data);
    const response = event?.["response"];
    if (this.#final === null || !isRecord(response)) {
      return ending;
    }
    return (await storeAnswered(ports, this.#call, modelId, response))
      ? ending
      : ssePieceText(
          withResponse(this.#final, event, asStored(response, false)),
        );
  }

  #withContext(piece: StreamPiece): StreamPiece {
    // Few events have the response; the many deltas are not parsed.
    if (!piece.data.includes('"response"')) {
      return piece;
    }
    const event = parseRecord(piece.data);
    const response = event?.["response"];
    if (!isRecord(response)) {
      return piece;
    }
    const own = withContext(this.#call.responseContext, response);
    const sent = withResponse(piece, event, own);
    if (FINAL.includes(textOf(event?.["type"]))) {
      this.#final = sent;
    }
    return sent;
  }
}

/** The response of an event that ends a stream as failed; an event `error` has none, only what went wrong. */
function failureIn({ data }: StreamPiece): JsonRecord {
  const response = parseRecord(data)?.["response"];
  if (isRecord(response)) {
    return response;
  }
  const { error } = parseRecord(errorInEvent(data)?.text ?? "") ?? {};
  const { code, message } = recordOf(error);
  return { error: { code: textOf(code) || "server_error", message } };
}

function withResponse(
  piece: StreamPiece,
  event: JsonRecord | null,
  response: JsonRecord,
): StreamPiece {
  return { ...piece, data: JSON.stringify({ ...event, response }) };
}

/** A response with what the gateway knows of it: the provider stores and continues none. */
export function withContext(
  context: ResponseContext,
  response: JsonRecord,
): JsonRecord {
  const { conversationId, previousId } = context;
  return {
    ...response,
    id: context.id,
    background: context.background !== null,
    previous_response_id: previousId,
    ...(conversationId === null
      ? {}
      : { conversation: { id: conversationId } }),
    store: context.stores,
  };
}

function asStored(response: JsonRecord, isStored: boolean): JsonRecord {
  return isStored ? response : { ...response, store: false };
}

/** What is stored of a call before it is answered. */
function contentOf(
  { config }: Pick<Gateway, "config">,
  call: StatefulCall,
  response: JsonRecord,
  modelId: string,
): Content {
  return {
    // As the provider got it: what a guardrail masked is not stored either.
    input: ownInput(call.responseContext, call.body),
    response,
    modelId,
    session: sessionOf(call, config.router.sessionAffinity),
  };
}

/** The items of a call's input without those that it continues. */
export function ownInput(
  { id, historyLength }: ResponseContext,
  { input }: CallBody,
): readonly JsonRecord[] {
  const own =
    historyLength === 0
      ? itemsOf(input)
      : recordsOf(listOf(input).slice(historyLength));
  return withIds(own, id);
}

/** Stores a response that has an answer; false: it was to be stored, and is not. */
async function storeAnswered(
  ports: Ports,
  call: StatefulCall,
  modelId: string,
  response: JsonRecord,
): Promise<boolean> {
  const { responseContext: context, body } = call;
  if (!["completed", "incomplete"].includes(textOf(response["status"]))) {
    return !context.stores;
  }
  return storeResponse(ports, context, body, () =>
    contentOf(ports, call, response, modelId),
  );
}

/**
 * Stores a response, or lets its connection remember it if the caller wants none stored; false: it was to be stored, and is not.
 * The call has been answered and billed, so it does not fail if Postgres is unavailable: then the client sees `store: false`.
 */
export async function storeResponse(
  ports: Omit<Ports, "config">,
  context: ResponseContext,
  body: CallBody,
  contentOfCall: () => Content,
): Promise<boolean> {
  if (!context.stores && context.memory === null) {
    return true;
  }
  const content = contentOfCall();
  if (context.stores) {
    try {
      // Who follows it reads its end last.
      await context.background?.events?.written();
      await ports.responses.save(context, content);
      return true;
    } catch (error) {
      ports.log.warn(
        { error, response: context.id },
        "a response could not be stored",
      );
    }
  }
  context.memory?.remember(context.id, {
    items: [...itemsOf(body["input"]), ...outputOf(content)].map(asInput),
    rootId: context.rootId,
    session: content.session,
  });
  return !context.stores;
}
