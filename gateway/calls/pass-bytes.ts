import type { FastifyReply } from "fastify";
import type { Gateway } from "../gateway.ts";
import { brokenOff, type UpstreamFailure } from "../providers/failure.ts";
import { stopReading } from "../providers/streamed-answer.ts";
import { MAX_MEASURED_BYTES } from "../tokens/spoken-audio.ts";
import { usageOf } from "../tokens/usage.ts";
import type { AnswerFacts } from "../providers/wire.ts";
import type { Admitted } from "./admit.ts";
import { timeIn } from "./call-clock.ts";
import type { Call } from "./call.ts";
import { headerText } from "./deployment-headers.ts";
import { answerHeaders } from "./headers.ts";
import { correctUsage, type ArrivingAnswer } from "./provider.ts";
import { endCall } from "./record.ts";
import { endUnread } from "./send-attempt.ts";
import { isBilledByLength, spokenSeconds } from "./spoken-length.ts";
import { untilRead } from "./stream.ts";

interface Passed {
  /** The last byte, held back until the call is recorded. */
  readonly last: Buffer;
  readonly firstAt: number | null;
  readonly failure: UpstreamFailure | null;
  readonly bytes: number;
  /** What was received, if it is to be measured. */
  readonly kept: readonly Buffer[];
}

/**
 * Passes an answer on as bytes while it arrives, such as audio. Its last byte is held back until the call is recorded and
 * settled. When the client leaves, the provider is stopped; when the provider breaks off, the connection is closed, so that
 * the client notices. Both are billed.
 */
export async function passBytes(
  gateway: Gateway,
  call: Call,
  admitted: Admitted,
  upstream: ArrivingAnswer,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const client = reply.raw;
  try {
    const headers = answerHeaders(gateway, call, admitted, {
      upstream,
      cost: null,
      cache: "bypass",
    });
    client.writeHead(200, {
      ...headers,
      "content-type": headerText(upstream.contentType),
    });
    reply.hijack();
    // Only a client that does not read is idle: untilRead sets the timeout.
    client.setTimeout(0, () => client.destroy());
    const startedAt = performance.now();
    const passed = await passOn(gateway, call, upstream, client);
    if (passed.failure !== null) {
      upstream.brokeOff(passed.failure);
    }
    await record(gateway, call, upstream, passed, {
      waitedMs: upstream.waitedMs + performance.now() - startedAt,
      clientLeft: client.destroyed,
    });
    client.setTimeout(gateway.config.timeouts.idleMs);
    if (passed.failure === null) {
      client.end(passed.last);
    } else {
      client.destroy();
    }
  } catch (error) {
    endUnread(upstream);
    if (reply.sent) {
      client.destroy();
    }
    throw error;
  }
  return reply;
}

async function passOn(
  { config }: Pick<Gateway, "config">,
  call: Call,
  upstream: ArrivingAnswer,
  client: FastifyReply["raw"],
): Promise<Passed> {
  const measured = isBilledByLength(call, upstream.deployment);
  const kept: Buffer[] = [];
  let last: Buffer = Buffer.alloc(0);
  let bytes = 0;
  let firstAt: number | null = null;
  let failure: UpstreamFailure | null = null;
  const stop = () => upstream.abort();
  client.once("close", stop);
  try {
    for await (const chunk of upstream.chunks) {
      firstAt ??= timeIn(call);
      bytes += chunk.length;
      if (measured && bytes <= MAX_MEASURED_BYTES) {
        kept.push(chunk);
      }
      if (client.destroyed) {
        break;
      }
      const ready = Buffer.concat([last, chunk]);
      last = ready.subarray(-1);
      if (!client.write(ready.subarray(0, -1))) {
        await untilRead(client, config.timeouts.idleMs);
      }
    }
  } catch (error) {
    failure = client.destroyed
      ? null
      : brokenOff(error, upstream.deployment.apiBase);
  } finally {
    client.off("close", stop);
    stopReading(upstream.body);
  }
  return { last, firstAt, failure, bytes, kept };
}

async function factsOf(
  call: Call,
  { deployment, contentType }: ArrivingAnswer,
  { bytes, kept }: Passed,
): Promise<AnswerFacts> {
  const nothing = { usage: null, responseId: null, text: "" };
  const spoken = { bytes, kept, contentType };
  return isBilledByLength(call, deployment)
    ? { ...nothing, spokenSeconds: await spokenSeconds(call, spoken) }
    : nothing;
}

async function record(
  gateway: Gateway,
  call: Call,
  upstream: ArrivingAnswer,
  passed: Passed,
  ended: { readonly waitedMs: number; readonly clientLeft: boolean },
): Promise<void> {
  const { failure, firstAt } = passed;
  const facts = await factsOf(call, upstream, passed);
  const { deployment } = upstream;
  const usage = usageOf(gateway.tokens, call, deployment, facts);
  await endCall(gateway, call, {
    status: failure === null ? "success" : "failure",
    deployment,
    usage,
    firstTokenAt: firstAt,
    responseId: null,
    cached: null,
    waitedMs: ended.waitedMs,
    metadata: metadataOf(upstream, passed, ended.clientLeft),
    response: () => null,
  });
  correctUsage(gateway, upstream, usage);
}

function metadataOf(
  { attempts }: ArrivingAnswer,
  { failure }: Passed,
  clientLeft: boolean,
): Readonly<Record<string, unknown>> | null {
  const metadata = {
    ...(attempts.length === 0 ? {} : { attempts }),
    ...(clientLeft ? { client_disconnected: true } : {}),
    ...(failure === null
      ? {}
      : {
          error_information: {
            error_code: String(failure.status),
            error_message: failure.keptMessage,
          },
        }),
  };
  return Object.keys(metadata).length === 0 ? null : metadata;
}
