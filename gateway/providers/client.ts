import type { Readable } from "node:stream";
import { Agent, request } from "undici";
import type { TimeoutConfig } from "../config/types.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import { UpstreamFailure, unreachable } from "./failure.ts";

export interface ProviderAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: Readable;
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
  readonly stream: boolean;
  readonly signal: AbortSignal;
}

export interface ProviderClient {
  /** Sends one call; resolves with a 2xx answer whose body is still to be read, throws {@link UpstreamFailure}. */
  send(call: ProviderCall): Promise<ProviderAnswer>;
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
    async send(call) {
      const { deployment, stream } = call;
      const firstByteMs =
        (stream ? deployment.streamTimeoutMs : null) ??
        deployment.timeoutMs ??
        timeouts.firstByteMs;
      try {
        const answer = await request(deployment.apiBase + call.path, {
          dispatcher: agent,
          method: "POST",
          body: call.body,
          signal: call.signal,
          headers: headersFor(call),
          headersTimeout: firstByteMs,
          bodyTimeout: timeouts.idleMs,
        });
        if (answer.statusCode >= 200 && answer.statusCode < 300)
          return {
            status: answer.statusCode,
            contentType: String(
              answer.headers["content-type"] ?? "application/json",
            ),
            body: answer.body,
          };
        throw new UpstreamFailure(
          answer.statusCode,
          withoutSecret(
            call.error(answer.statusCode, await readErrorText(answer.body)),
            deployment,
          ),
          retryAfterMs(answer.headers["retry-after"]),
        );
      } catch (error) {
        throw error instanceof UpstreamFailure
          ? error
          : unreachable(error, deployment.apiBase);
      }
    },
    close: () => agent.close(),
  };
}

function headersFor({
  deployment,
  callId,
  stream,
  headers,
}: ProviderCall): Record<string, string> {
  const sent: Record<string, string> = {
    "content-type": "application/json",
    accept: stream ? "text/event-stream" : "application/json",
    "x-request-id": callId,
    ...headers,
  };
  for (const [name, value] of Object.entries(deployment.headers))
    sent[name] = value.reveal();
  return sent;
}

async function readErrorText(body: ProviderAnswer["body"]): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > ERROR_BYTES) break;
  }
  return Buffer.concat(chunks).toString("utf8");
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
