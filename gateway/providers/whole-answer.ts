import type { Agent, Dispatcher } from "undici";
import type { TimeoutConfig } from "../config/types.ts";
import { errorInBody } from "./answered-error.ts";
import { reservePart } from "./counted-answer.ts";
import {
  answeredError,
  contentTypeOf,
  errorAnswer,
  isTimeout,
  MAX_ERROR_BYTES,
} from "./error-answer.ts";
import {
  brokenOff,
  callEnded,
  unreachable,
  UpstreamFailure,
} from "./failure.ts";
import {
  headersFor,
  idleMsOf,
  placeOf,
  type ProviderCall,
  type ResponseHeaders,
} from "./provider-call.ts";

export interface WholeAnswer {
  readonly contentType: string;
  readonly body: Buffer;
}

/** Sends a call and reads its whole answer, without a stream in between: most answers arrive in one chunk. */
export function askWhole(
  agent: Agent,
  timeouts: TimeoutConfig,
  call: ProviderCall,
): Promise<WholeAnswer> {
  const { deployment } = call;
  return new Promise((resolve, reject) => {
    agent.dispatch(
      {
        ...placeOf(call),
        method: "POST",
        body: call.body,
        headers: headersFor(call, "application/json"),
        headersTimeout:
          call.firstByteMs ?? deployment.timeoutMs ?? timeouts.firstByteMs,
        bodyTimeout: idleMsOf(call, timeouts),
      },
      new WholeAnswerReader(call, resolve, reject),
    );
  });
}

/** Collects one answer. */
class WholeAnswerReader implements Dispatcher.DispatchHandler {
  readonly #call: ProviderCall;
  readonly #resolve: (answer: WholeAnswer) => void;
  readonly #reject: (error: unknown) => void;
  readonly #chunks: Buffer[] = [];
  #status = 0;
  #headers: ResponseHeaders = {};
  #bytes = 0;
  /** null: the request waits for a connection. */
  #controller: Dispatcher.DispatchController | null = null;
  readonly #onAbort = () => {
    if (this.#controller === null) {
      this.#reject(unreachable(callEnded(), this.#call.deployment.apiBase));
    } else {
      this.#controller.abort(callEnded());
    }
  };
  #sent = false;

  constructor(
    call: ProviderCall,
    resolve: (answer: WholeAnswer) => void,
    reject: (error: unknown) => void,
  ) {
    this.#call = call;
    this.#resolve = resolve;
    this.#reject = reject;
    call.signal.addEventListener("abort", this.#onAbort, { once: true });
    if (call.signal.aborted) {
      this.#onAbort();
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.#sent = !this.#call.signal.aborted;
    if (!this.#sent) {
      this.#onAbort();
    }
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: ResponseHeaders,
  ): void {
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(
    controller: Dispatcher.DispatchController,
    chunk: Buffer,
  ): void {
    this.#bytes += chunk.length;
    if (this.#isSuccess()) {
      try {
        reservePart(this.#call, chunk, this.#bytes);
      } catch (error) {
        controller.abort(error as UpstreamFailure);
        return;
      }
    }
    if (this.#isSuccess() || this.#bytes <= MAX_ERROR_BYTES) {
      this.#chunks.push(chunk);
    }
  }

  onResponseEnd(): void {
    this.#stopListening();
    const body = this.#body();
    if (!this.#isSuccess()) {
      this.#reject(
        errorAnswer(
          this.#call,
          this.#status,
          this.#headers,
          body.toString("utf8"),
        ),
      );
      return;
    }
    const failure = this.#failureIn(body);
    if (failure === null) {
      this.#call.onHeaders?.(this.#headers);
      this.#resolve({ contentType: contentTypeOf(this.#headers), body });
    } else {
      this.#reject(failure);
    }
  }

  /** Of an answer with a status of success; null: there is none. */
  #failureIn(body: Buffer): UpstreamFailure | null {
    const error = errorInBody(body);
    if (error !== null) {
      return answeredError(this.#call, this.#headers, error);
    }
    return this.#call.anyType === true
      ? null
      : faultOfJson(this.#call, this.#headers, body);
  }

  onResponseError(
    _controller: Dispatcher.DispatchController,
    error: Error,
  ): void {
    this.#stopListening();
    const { deployment, signal } = this.#call;
    if (error instanceof UpstreamFailure) {
      this.#reject(error);
      return;
    }
    const describe = this.#status === 0 ? unreachable : brokenOff;
    const failure = describe(error, deployment.apiBase);
    failure.mayBeCharged =
      this.#isSuccess() || (this.#sent && isTimeout(failure, signal));
    this.#reject(failure);
  }

  #isSuccess(): boolean {
    return this.#status >= 200 && this.#status < 300;
  }

  #body(): Buffer {
    const [first] = this.#chunks;
    return first !== undefined && this.#chunks.length === 1
      ? first
      : Buffer.concat(this.#chunks);
  }

  #stopListening(): void {
    this.#call.signal.removeEventListener("abort", this.#onAbort);
  }
}

/**
 * By the first and the last bracket: most answers are parsed later, and once. Without a length, a server that dies in the middle
 * of its answer closes the connection as one that has finished. null: an object or a list.
 */
function faultOfJson(
  call: ProviderCall,
  headers: ResponseHeaders,
  body: Buffer,
): UpstreamFailure | null {
  const end = END_OF.get(body.find(isFilled));
  if (end === undefined) {
    return notJson(call, headers);
  }
  if (body.findLast(isFilled) === end) {
    return null;
  }
  const failure = brokenOff(INCOMPLETE, call.deployment.apiBase);
  failure.mayBeCharged = true;
  return failure;
}

const INCOMPLETE = new Error("incomplete JSON");
const WHITE_SPACE = Buffer.from(" \t\r\n");
const [OBJECT, OBJECT_END, LIST, LIST_END] = Buffer.from("{}[]");
/** The last byte of what begins with a byte. */
const END_OF = new Map([
  [OBJECT, OBJECT_END],
  [LIST, LIST_END],
]);

function isFilled(byte: number): boolean {
  return !WHITE_SPACE.includes(byte);
}

/** Other servers at a wrong address answer with a page. */
function notJson(
  { deployment }: ProviderCall,
  headers: ResponseHeaders,
): UpstreamFailure {
  const failure = new UpstreamFailure(
    502,
    `${deployment.apiBase} did not answer with JSON (${contentTypeOf(headers)}): check that this is the address of its API`,
  );
  failure.mayBeCharged = true;
  return failure;
}
