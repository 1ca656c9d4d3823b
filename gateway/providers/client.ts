import type { Readable } from "node:stream";
import { Agent, request } from "undici";
import type { TimeoutConfig } from "../config/types.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { reasons } from "../dialects/dialect.ts";
import { errorInBody, type AnsweredError } from "./answered-error.ts";
import { UpstreamFailure, unreachable } from "./failure.ts";
import { startOfStream, type StreamClient } from "./stream-start.ts";

export interface StreamedAnswer {
  readonly contentType: string;
  /** To be read through `chunks`. */
  readonly body: Readable;
  readonly chunks: AsyncIterable<Buffer>;
}

export interface WholeAnswer {
  readonly contentType: string;
  readonly body: Buffer;
}

export interface ProviderCall {
  readonly deployment: PricedDeployment;
  readonly path: string;
  readonly callId: string;
  /** Of the provider's format; the deployment's own go over them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** What a refusal says, as one sentence. */
  error(status: number, text: string): string;
  /** Ends the call before its time. */
  readonly signal: AbortSignal;
}

export interface ProviderClient {
  /** Sends one call; resolves with a 2xx answer that is no error, throws {@link UpstreamFailure}. */
  ask(call: ProviderCall): Promise<WholeAnswer>;
  /** The same for a stream, from its first event on; earlier where the client leaves. */
  stream(
    call: ProviderCall,
    client: StreamClient | null,
  ): Promise<StreamedAnswer>;
  close(): Promise<void>;
}

/** Most of an error's text that is read and passed on. */
const ERROR_BYTES = 64 * 1024;

/** HTTP to providers, connections kept open. Its timeouts are those of the configuration; a deployment's own win. */
export function createProviderClient(timeouts: TimeoutConfig): ProviderClient {
  const agent = new Agent({
    connect: { timeout: timeouts.connectMs },
    keepAliveTimeout: 30_000,
    connections: null,
  });
  return {
    async ask(call) {
      try {
        return await askWhole(agent, timeouts, call);
      } catch (error) {
        // A header that cannot be sent is thrown at once.
        throw error instanceof UpstreamFailure
          ? error
          : unreachable(error, call.deployment.apiBase);
      }
    },
    async stream(call, client) {
      const { deployment } = call;
      const firstByteMs =
        deployment.streamTimeoutMs ??
        deployment.timeoutMs ??
        timeouts.firstByteMs;
      let sent = false;
      const dispatcher = agent.compose((dispatch) => (options, handler) => {
        const start = handler.onRequestStart?.bind(handler);
        handler.onRequestStart = (...args) => {
          sent = true;
          start?.(...args);
        };
        return dispatch(options, handler);
      });
      try {
        const answer = await request(deployment.apiBase + call.path, {
          dispatcher,
          method: "POST",
          body: call.body,
          signal: call.signal,
          headers: headersFor(call, "text/event-stream"),
          headersTimeout: firstByteMs,
          bodyTimeout: idleMsOf(deployment, timeouts),
        });
        const { statusCode, headers, body } = answer;
        if (statusCode < 200 || statusCode >= 300) {
          throw refusal(
            call,
            statusCode,
            headers,
            (await readStart(body)).toString("utf8"),
          );
        }
        const contentType = contentTypeOf(headers);
        if (!contentType.includes("text/event-stream")) {
          throw noStream(call, headers, await readStart(body));
        }
        const start = await startOfStream(body, client).catch(
          begunToFail(call),
        );
        if (start.error === null) {
          return { contentType, body, chunks: start.chunks };
        }
        // Without a listener the error of a body that is not read would end the process.
        body.on("error", () => undefined).destroy();
        throw answeredError(call, headers, start.error);
      } catch (error) {
        if (error instanceof UpstreamFailure) {
          throw error;
        }
        const failure = unreachable(error, deployment.apiBase);
        failure.mayBeCharged = sent && isTimeout(failure, call.signal);
        throw failure;
      }
    },
    close: () => agent.close(),
  };
}

/** Ended by a time limit of ours: the provider knows nothing of it, and may finish. */
function isTimeout(failure: UpstreamFailure, signal: AbortSignal): boolean {
  return failure.status === 408 || signal.aborted;
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;

function contentTypeOf(headers: Headers): string {
  return String(headers["content-type"] ?? "application/json");
}

function refusal(
  call: ProviderCall,
  status: number,
  headers: Headers,
  text: string,
): UpstreamFailure {
  return new UpstreamFailure(
    status,
    withoutSecret(call.error(status, text), call.deployment),
    retryAfterMs(headers["retry-after"]),
  );
}

/** A failure, although its status says success. */
function answeredError(
  call: ProviderCall,
  headers: Headers,
  { status, text, usage }: AnsweredError,
): UpstreamFailure {
  const failure = refusal(call, status, headers, text);
  failure.usage = usage;
  return failure;
}

/** Some providers answer a call for a stream with an error as JSON. */
function noStream(
  call: ProviderCall,
  headers: Headers,
  start: Buffer,
): UpstreamFailure {
  const error = errorInBody(start);
  if (error !== null) {
    return answeredError(call, headers, error);
  }
  const failure = new UpstreamFailure(
    502,
    `${call.deployment.apiBase} did not answer with a stream: leave \`stream\` out`,
  );
  failure.mayBeCharged = true;
  return failure;
}

function begunToFail({ deployment }: ProviderCall): (error: unknown) => never {
  return (error) => {
    const failure = unreachable(error, deployment.apiBase);
    failure.mayBeCharged = true;
    throw failure;
  };
}

/** Without a stream in between: most answers come in one piece. */
function askWhole(
  agent: Agent,
  timeouts: TimeoutConfig,
  call: ProviderCall,
): Promise<WholeAnswer> {
  const { deployment, signal } = call;
  const { origin, base } = addressOf(deployment);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let status = 0;
    let headers: Headers = {};
    let bytes = 0;
    let sent = false;
    let onAbort: (() => void) | null = null;
    const done = () => {
      if (onAbort !== null) {
        signal.removeEventListener("abort", onAbort);
      }
    };
    const answered = () => status >= 200 && status < 300;
    agent.dispatch(
      {
        origin,
        path: base + call.path,
        method: "POST",
        body: call.body,
        headers: headersFor(call, "application/json"),
        headersTimeout: deployment.timeoutMs ?? timeouts.firstByteMs,
        bodyTimeout: idleMsOf(deployment, timeouts),
      },
      {
        onRequestStart(controller) {
          sent = !signal.aborted;
          onAbort = () => controller.abort(new Error("the call was ended"));
          if (signal.aborted) {
            onAbort();
          } else {
            signal.addEventListener("abort", onAbort, { once: true });
          }
        },
        onResponseStart(_, code, sent) {
          status = code;
          headers = sent;
        },
        onResponseData(_, chunk) {
          bytes += chunk.length;
          if (answered() || bytes <= ERROR_BYTES) {
            chunks.push(chunk);
          }
        },
        onResponseEnd() {
          done();
          const [first] = chunks;
          const body =
            first !== undefined && chunks.length === 1
              ? first
              : Buffer.concat(chunks);
          if (!answered()) {
            return reject(
              refusal(call, status, headers, body.toString("utf8")),
            );
          }
          const error = errorInBody(body);
          if (error !== null) {
            reject(answeredError(call, headers, error));
          } else {
            resolve({ contentType: contentTypeOf(headers), body });
          }
        },
        onResponseError(_, error) {
          done();
          const failure = unreachable(error, deployment.apiBase);
          failure.mayBeCharged =
            answered() || (sent && isTimeout(failure, signal));
          reject(failure);
        },
      },
    );
  });
}

/**
 * 0: no limit. Models that reason may send nothing meanwhile, but for Anthropic's, which send pings; that the other end is
 * gone is noticed by TCP's own keep-alive, which undici switches on.
 */
function idleMsOf(
  deployment: PricedDeployment,
  { idleMs }: TimeoutConfig,
): number {
  const silent = deployment.provider !== "anthropic" && reasons(deployment);
  return deployment.idleTimeoutMs ?? (silent ? 0 : idleMs);
}

const addresses = new WeakMap<
  PricedDeployment,
  { readonly origin: string; readonly base: string }
>();

/** Where a deployment is, taken apart once. */
function addressOf(deployment: PricedDeployment) {
  const known = addresses.get(deployment);
  if (known !== undefined) {
    return known;
  }
  const { origin, pathname } = new URL(deployment.apiBase);
  const address = { origin, base: pathname.replace(/\/$/, "") };
  addresses.set(deployment, address);
  return address;
}

function headersFor(
  { deployment, callId, headers }: ProviderCall,
  accept: string,
): Record<string, string> {
  const sent: Record<string, string> = {
    "content-type": "application/json",
    accept,
    "x-request-id": callId,
    ...headers,
  };
  for (const [name, value] of Object.entries(deployment.headers)) {
    sent[name] = value.reveal();
  }
  return sent;
}

async function readStart(body: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > ERROR_BYTES) {
      break;
    }
  }
  return Buffer.concat(chunks);
}

/** A provider may repeat the key it was sent; nobody else shall read it. */
function withoutSecret(text: string, deployment: PricedDeployment): string {
  const key = deployment.apiKey?.reveal();
  return key === undefined || key.length < 4
    ? text
    : text.replaceAll(key, "[secret]");
}

function retryAfterMs(header: string | string[] | undefined): number | null {
  const seconds = Number(Array.isArray(header) ? header[0] : header);
  return Number.isFinite(seconds) && seconds >= 0 && header !== undefined
    ? seconds * 1_000
    : null;
}
