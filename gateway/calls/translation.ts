import type { FormData } from "undici";
import type { GatewayConfig } from "../config/types.ts";
import { CallError, invalidParam } from "../http/errors.ts";
import { chatFor } from "../providers/chat-wire.ts";
import { wireOf } from "../providers/families.ts";
import { formOf } from "../providers/form-body.ts";
import type { SseEvent } from "../../core/sse.ts";
import type {
  AnswerFacts,
  Endpoint,
  ProviderWire,
  StreamPiece,
  TranslatedAnswer,
} from "../providers/wire.ts";
import type { PricedDeployment } from "../routing/catalog.ts";
import type { Call } from "./call.ts";
import { bodyWithout } from "./gateway-fields.ts";
import { openaiErrorPieces } from "./stream-error.ts";

/** The translation of one call for one deployment, and of its answer to the client's shape. */
export interface Translation {
  /** The provider's endpoint. */
  readonly endpoint: Endpoint;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** JSON or a form, built when it is sent. */
  body(): string | FormData;
  answer(bytes: Buffer): TranslatedAnswer;
  stream(): StreamTranslation;
  /** The message of an error answer, as one sentence. */
  error(status: number, text: string): string;
}

export interface StreamTranslation {
  push(event: SseEvent): readonly StreamPiece[];
  /** The rest when the provider closed the stream in order. */
  end(): readonly StreamPiece[];
  /** The error for a stream that broke off. */
  fail(error: CallError): readonly StreamPiece[];
  facts(): AnswerFacts;
}

/**
 * Translates a call natively if the provider has the endpoint, otherwise (or `asChat`) to chat. Throws `invalid_request`
 * naming what the provider does not support, unless such parameters are dropped.
 */
export function translationFor(
  config: GatewayConfig,
  call: Call,
  deployment: PricedDeployment,
  { asChat }: { readonly asChat: boolean },
): Translation {
  const wire = wireOf(deployment.provider);
  const { endpoint, shape } = call.kind;
  if (!asChat && wire.speaks(endpoint, deployment)) {
    return through(config, call, deployment, wire, endpoint, {
      body: call.body,
      lacks: [],
    });
  }
  if (shape === null) {
    throw new CallError(
      "invalid_request",
      `The provider of ${call.group.alias} (${deployment.providerName}) has no ${endpoint}. Choose another model.`,
      { param: "model" },
    );
  }
  const chat = shape.chatBody(call.body, deployment);
  const inner = through(config, call, deployment, wire, "chat", chat);
  return {
    ...inner,
    answer(bytes) {
      const { body, facts } = inner.answer(bytes);
      return {
        body: shape.answer(body, call.body, call.responseContext?.id),
        facts,
      };
    },
    stream() {
      const provider = inner.stream();
      const client = shape.stream(
        call.body,
        call.responseContext?.id,
        call.inputTokens,
      );
      const all = (pieces: readonly StreamPiece[]) =>
        pieces.flatMap((piece) => client.push(piece));
      return {
        push: (event) => all(provider.push(event)),
        end: () => all(provider.end()),
        fail: (error) => client.fail(error),
        facts: () => provider.facts(),
      };
    },
  };
}

/** A mock answer is one of OpenAI's chat, whatever the provider. Throws `invalid_request` for a call that no chat can answer. */
export function mockTranslation(
  config: GatewayConfig,
  call: Call,
  deployment: PricedDeployment,
): Translation {
  const { endpoint, shape, route } = call.kind;
  if (endpoint !== "chat" && shape === null) {
    throw invalidParam(
      "mock_response",
      `has no meaning for ${route}: omit it.`,
    );
  }
  const chat: PricedDeployment = {
    ...deployment,
    provider: "openai",
    // That of no provider, whose chat might go another way.
    apiBase: "",
    mode: "chat",
  };
  return translationFor(config, call, chat, { asChat: shape !== null });
}

function through(
  config: GatewayConfig,
  call: Call,
  deployment: PricedDeployment,
  spoken: ProviderWire,
  endpoint: Endpoint,
  asked: { readonly body: Call["body"]; readonly lacks: readonly string[] },
): Translation {
  const isDropped = (name: string) => deployment.droppedParams.includes(name);
  const given = bodyWithout(asked.body, isDropped);
  const { wire, body } =
    endpoint === "chat"
      ? chatFor(spoken, given, deployment, call.stream)
      : { wire: spoken, body: given };
  rejectUnsupported(config, call, deployment, [
    ...asked.lacks.filter((name) => !isDropped(name)),
    ...wire.unsupported(endpoint, body, deployment),
  ]);
  return {
    endpoint,
    path: wire.path(endpoint, deployment),
    headers: wire.headers(
      deployment,
      call.forwarded,
      endpoint === "chat" ? body : undefined,
    ),
    body() {
      const sent = wire.request(endpoint, body, deployment, call.stream);
      return call.kind.takesFiles === true
        ? formOf(sent)
        : JSON.stringify(sent);
    },
    answer: (bytes) => wire.answer(endpoint, bytes, body),
    stream() {
      const translator = wire.stream(endpoint);
      return {
        push: (event) => translator.push(event),
        end: () => translator.end(),
        fail: (error) =>
          translator.fail?.(error.message) ??
          call.kind.shape?.stream(call.body).fail(error) ??
          openaiErrorPieces(error),
        facts: () => translator.facts(),
      };
    },
    error: (status, text) => wire.error(status, text),
  };
}

function rejectUnsupported(
  config: GatewayConfig,
  call: Call,
  deployment: PricedDeployment,
  lacking: readonly string[],
): void {
  const { dropParams } = call.options;
  const asked = typeof dropParams === "boolean" ? dropParams : null;
  const named = Array.isArray(dropParams) ? dropParams : [];
  const drops = asked ?? deployment.dropParams ?? config.general.dropParams;
  const kept = drops ? [] : lacking.filter((name) => !named.includes(name));
  const [first] = kept;
  if (first === undefined) {
    return;
  }
  throw new CallError(
    "invalid_request",
    `The provider of ${call.group.alias} (${deployment.providerName}) does not support ${kept.map((name) => `\`${name}\``).join(", ")}: omit it, or set \`drop_params\`.`,
    { param: first },
  );
}
