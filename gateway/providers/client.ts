import type { TimeoutConfig } from "../config/types.ts";
import { UpstreamFailure, unreachable } from "./failure.ts";
import { DeploymentAgents } from "./outgoing-agent.ts";
import type { ProviderCall } from "./provider-call.ts";
import type { StreamClient } from "./stream-start.ts";
import {
  askForBytes,
  askForStream,
  notingSent,
  type StreamedAnswer,
} from "./streamed-answer.ts";
import { askWhole, type WholeAnswer } from "./whole-answer.ts";

export interface ProviderClient {
  /** Sends one call; resolves with a successful answer, throws {@link UpstreamFailure}. */
  ask(call: ProviderCall): Promise<WholeAnswer>;
  /** The same for a stream, from its first content; earlier when the client leaves. */
  stream(
    call: ProviderCall,
    client: StreamClient | null,
  ): Promise<StreamedAnswer>;
  /** The same for bytes, from the first of them. */
  bytes(call: ProviderCall): Promise<StreamedAnswer>;
  close(): Promise<void>;
}

/** More than the longest answers: the vectors of 2,048 texts, or ten images as JSON. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;

/** HTTP to providers over kept-alive connections. A deployment's own timeouts override those of the configuration. */
export function createProviderClient(
  timeouts: TimeoutConfig,
  maxAnswerBytes = MAX_ANSWER_BYTES,
): ProviderClient {
  const agents = new DeploymentAgents(timeouts.connectMs, maxAnswerBytes);
  const streaming = {
    any: notingSent(agents.any),
    public: notingSent(agents.public),
  };
  const streamingFor = ({ deployment }: ProviderCall) =>
    deployment.publicOnly ? streaming.public : streaming.any;
  return {
    async ask(call) {
      try {
        return await askWhole(agents.of(call.deployment), timeouts, call);
      } catch (error) {
        // An invalid header is thrown synchronously.
        throw error instanceof UpstreamFailure
          ? error
          : unreachable(error, call.deployment.apiBase);
      }
    },
    stream: (call, client) =>
      askForStream(streamingFor(call), timeouts, call, client),
    bytes: (call) => askForBytes(streamingFor(call), timeouts, call),
    close: () => agents.close(),
  };
}
