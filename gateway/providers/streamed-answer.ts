import { Readable } from "node:stream";
import { request, type Agent, type Dispatcher } from "undici";
import type { TimeoutConfig } from "../config/types.ts";
import { errorInBody } from "./answered-error.ts";
import { readCounted } from "./counted-answer.ts";
import {
  answeredError,
  contentTypeOf,
  errorAnswer,
  isTimeout,
  MAX_ERROR_BYTES,
} from "./error-answer.ts";
import { brokenOff, UpstreamFailure, unreachable } from "./failure.ts";
import {
  headersFor,
  idleMsOf,
  urlOf,
  type ProviderCall,
  type ResponseHeaders,
} from "./provider-call.ts";
import {
  startOfStream,
  type StreamClient,
  type StreamStart,
} from "./stream-start.ts";

export interface StreamedAnswer {
  readonly contentType: string;
  /** To be read through `chunks`, then ended with {@link stopReading}, or with {@link readRest} if its last event has arrived. */
  readonly body: Readable;
  readonly chunks: AsyncIterable<Buffer>;
}

const END_WITHIN_MS = 1_000;

/**
 * Reads what follows the last event of a stream, so that its connection can serve another call: many servers send the end of the
 * body on its own.
 */
export function readRest(body: Readable): void {
  if (body.closed) {
    return;
  }
  const overdue = setTimeout(() => body.destroy(), END_WITHIN_MS).unref();
  body
    .on("error", () => undefined)
    .once("close", () => clearTimeout(overdue))
    .resume();
}

/** Ends a body that is not read to its end: without a listener its error would end the process. */
export function stopReading(body: Readable): void {
  body.on("error", () => undefined).destroy();
}

/** Of one request, as its `opaque`. */
interface Progress {
  isSent: boolean;
}

type Answered = Dispatcher.ResponseData<Progress>;

/** The dispatcher of {@link askForStream} and {@link askForBytes}: it notes which requests were sent. */
export function notingSent(agent: Agent): Dispatcher {
  return agent.compose((dispatch) => (options, handler) => {
    const { opaque } = options as { readonly opaque?: Progress };
    const start = handler.onRequestStart?.bind(handler);
    handler.onRequestStart = (...args) => {
      if (opaque !== undefined) {
        opaque.isSent = true;
      }
      start?.(...args);
    };
    return dispatch(options, handler);
  });
}

/** Sends a call for a stream; resolves at its first content, or earlier when the client leaves. Throws {@link UpstreamFailure}. */
export function askForStream(
  dispatcher: Dispatcher,
  timeouts: TimeoutConfig,
  call: ProviderCall,
  client: StreamClient | null,
): Promise<StreamedAnswer> {
  return ask(dispatcher, timeouts, call, "text/event-stream", (answer) =>
    readStart(call, answer, client),
  );
}

/** Sends a call for bytes, such as audio; resolves at the first of them. Throws {@link UpstreamFailure}. */
export function askForBytes(
  dispatcher: Dispatcher,
  timeouts: TimeoutConfig,
  call: ProviderCall,
): Promise<StreamedAnswer> {
  return ask(dispatcher, timeouts, call, "*/*", (answer) =>
    readFirstChunk(call, answer),
  );
}

async function ask(
  dispatcher: Dispatcher,
  timeouts: TimeoutConfig,
  call: ProviderCall,
  accept: string,
  read: (answer: Answered) => Promise<StreamedAnswer>,
): Promise<StreamedAnswer> {
  const { deployment } = call;
  const progress: Progress = { isSent: false };
  try {
    const answer = await request(urlOf(call), {
      dispatcher,
      method: "POST",
      body: call.body,
      signal: call.signal,
      headers: headersFor(call, accept),
      headersTimeout:
        call.firstByteMs ??
        deployment.streamTimeoutMs ??
        deployment.timeoutMs ??
        timeouts.firstByteMs,
      bodyTimeout: idleMsOf(call, timeouts),
      opaque: progress,
    });
    return await read(answer);
  } catch (error) {
    if (error instanceof UpstreamFailure) {
      throw error;
    }
    const failure = unreachable(error, deployment.apiBase);
    failure.mayBeCharged = progress.isSent && isTimeout(failure, call.signal);
    throw failure;
  }
}

/** Servers of OpenAI's format that are written by hand often name another type for their streams, or none. */
const OF_STREAMS = /event-stream|text\/plain|octet-stream/i;

/** Reads to the first content: what fails before is thrown, so that another attempt can follow. */
async function readStart(
  call: ProviderCall,
  answer: Answered,
  client: StreamClient | null,
): Promise<StreamedAnswer> {
  await throwErrorStatus(call, answer);
  const { headers, body } = answer;
  const contentType = contentTypeOf(headers);
  if (headers["content-type"] !== undefined && !OF_STREAMS.test(contentType)) {
    throw notAStream(call, headers, await readFirstBytes(body));
  }
  const start = await startOfStream(body, client);
  if (start.kind === "started") {
    call.onHeaders?.(headers);
    return { contentType, body, chunks: start.chunks };
  }
  stopReading(body);
  throw failureOf(call, headers, start);
}

/** A stream that breaks off after its headers may be charged for; one that reports an error, only for what it reports. */
function failureOf(
  call: ProviderCall,
  headers: ResponseHeaders,
  start: Exclude<StreamStart, { kind: "started" }>,
): UpstreamFailure {
  if (start.kind === "error") {
    return answeredError(call, headers, start.error);
  }
  const { apiBase } = call.deployment;
  const failure =
    start.kind === "broken"
      ? brokenOff(start.cause, apiBase)
      : new UpstreamFailure(
          502,
          `${apiBase} ended its stream without an answer: try again`,
        );
  failure.usage = start.usage;
  failure.mayBeCharged = true;
  return failure;
}

async function throwErrorStatus(
  call: ProviderCall,
  { statusCode, headers, body }: Answered,
): Promise<void> {
  if (statusCode < 200 || statusCode >= 300) {
    const text = (await readFirstBytes(body)).toString("utf8");
    throw errorAnswer(call, statusCode, headers, text);
  }
}

/** Some servers answer with an error as JSON in place of the bytes. */
async function readFirstChunk(
  call: ProviderCall,
  answer: Answered,
): Promise<StreamedAnswer> {
  await throwErrorStatus(call, answer);
  const { headers, body } = answer;
  const contentType = contentTypeOf(headers);
  if (headers["content-type"] !== undefined && /json/.test(contentType)) {
    const bytes = await readCounted(call, body);
    const error = errorInBody(bytes);
    if (error !== null) {
      throw answeredError(call, headers, error);
    }
    call.onHeaders?.(headers);
    return { contentType, body, chunks: Readable.from([bytes]) };
  }
  try {
    const chunks = await withFirst(body);
    call.onHeaders?.(headers);
    return { contentType, body, chunks };
  } catch (error) {
    const failure = brokenOff(error, call.deployment.apiBase);
    failure.mayBeCharged = true;
    throw failure;
  }
}

/** Waits for the first chunk, which the result yields again. */
async function withFirst(body: Readable): Promise<AsyncIterable<Buffer>> {
  const rest = body[Symbol.asyncIterator]() as AsyncIterator<Buffer, undefined>;
  let first: Promise<IteratorResult<Buffer, undefined>> | null = rest.next();
  await first;
  return {
    [Symbol.asyncIterator]: () => ({
      next() {
        const next = first ?? rest.next();
        first = null;
        return next;
      },
      async return() {
        await rest.return?.();
        return { done: true, value: undefined };
      },
    }),
  };
}

/** Some providers answer a call for a stream with an error as JSON. */
function notAStream(
  call: ProviderCall,
  headers: ResponseHeaders,
  start: Buffer,
): UpstreamFailure {
  const error = errorInBody(start);
  if (error !== null) {
    return answeredError(call, headers, error);
  }
  const failure = new UpstreamFailure(
    502,
    `${call.deployment.apiBase} did not answer with a stream: omit \`stream\``,
  );
  failure.mayBeCharged = true;
  return failure;
}

async function readFirstBytes(body: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > MAX_ERROR_BYTES) {
      break;
    }
  }
  return Buffer.concat(chunks);
}
