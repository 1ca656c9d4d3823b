import {
  createServer,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { listen } from "../../test/servers/ports.ts";

type Fields = Readonly<Record<string, unknown>>;

export interface TalkingProvider {
  readonly url: string;
  /** Bodies by path, the newest last. */
  readonly chats: readonly Fields[];
  readonly responses: readonly Fields[];
  /** Streams that wait. */
  waiting(): number;
  /** Lets them go on. */
  release(): void;
  stop(): Promise<void>;
}

export const USAGE = { input: 100, output: 20 };
/** Generated before a stream that was asked to wait does so. */
const FIRST_WORDS = "A word, and ";

/**
 * A provider with chat and the Responses API, stateless as any: it answers with what it was asked last, `wait` lets a
 * stream wait after its first words, `fail` fails, and `break` breaks a stream off with an error that
 * names its address, in the Responses API as a failed response, or `plainly` as an event.
 */
export async function startTalkingProvider(): Promise<TalkingProvider> {
  const chats: Fields[] = [];
  const responses: Fields[] = [];
  const waiting = new Set<() => void>();

  async function serve(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const body = await readBody(request);
    const isChat = request.url?.endsWith("/chat/completions") === true;
    (isChat ? chats : responses).push(body);
    const at = responses.length;
    const asked = lastText(body[isChat ? "messages" : "input"]);
    const answer = isChat ? chatAnswer : responseAnswer;
    if (asked.startsWith("fail")) {
      response.writeHead(400, { "content-type": "application/json" });
      return void response.end('{"error":{"message":"asked to fail"}}');
    }
    if (body["stream"] !== true) {
      response.writeHead(200, { "content-type": "application/json" });
      return void response.end(
        JSON.stringify(answer(body, `You said: ${asked}`, at)),
      );
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const send = (event: Fields) =>
      response.write(
        `${isChat ? "" : `event: ${String(event["type"])}\n`}data: ${JSON.stringify(event)}\n\n`,
      );
    if (asked.startsWith("wait")) {
      send(isChat ? chunk(FIRST_WORDS) : delta(FIRST_WORDS, at));
      await new Promise<void>((resolve) => {
        const go = () => {
          waiting.delete(go);
          resolve();
        };
        waiting.add(go);
        response.on("close", go);
      });
    }
    if (asked.startsWith("break")) {
      const message = `${request.headers.host} ran out of memory`;
      const error = { code: "server_error", message };
      send(isChat ? chunk(FIRST_WORDS) : delta(FIRST_WORDS, at));
      send(
        isChat
          ? { error }
          : asked === "break plainly"
            ? { type: "error", ...error, param: null }
            : { type: "response.failed", response: { error } },
      );
      return void response.end();
    }
    const text = `You said: ${asked}`;
    if (isChat) {
      send(chunk(text));
      send(chunk("", "stop"));
      send({ ...chunk("", "stop"), choices: [], usage: chatUsage });
      response.end("data: [DONE]\n\n");
      return;
    }
    const whole = responseAnswer(body, text, at);
    send({
      type: "response.created",
      response: { ...whole, status: "in_progress", output: [] },
    });
    (whole["output"] as Fields[]).forEach((item, output_index) => {
      const { content: _content, ...added } = item;
      const message = { ...added, content: [] };
      send({
        type: "response.output_item.added",
        output_index,
        item: "role" in item ? message : item,
      });
    });
    send({
      type: "response.content_part.added",
      ...placeOf(at),
      part: { type: "output_text", text: "", annotations: [] },
    });
    send(delta(text, at));
    send({ type: "response.completed", response: whole });
    response.end();
  }

  const server = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy());
  });
  const port = await listen(server);
  return {
    url: `http://127.0.0.1:${port}/v1`,
    chats,
    responses,
    waiting: () => waiting.size,
    release() {
      waiting.forEach((go) => go());
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const chatUsage = {
  prompt_tokens: USAGE.input,
  completion_tokens: USAGE.output,
  total_tokens: USAGE.input + USAGE.output,
};

function chatAnswer({ model }: Fields, text: string): Fields {
  return {
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1,
    model,
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: text },
        finish_reason: "stop",
      },
    ],
    usage: chatUsage,
  };
}

function chunk(content: string, finish: string | null = null): Fields {
  return {
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
    created: 1,
    model: "m",
    choices: [{ index: 0, delta: { content }, finish_reason: finish }],
  };
}

/** Of the text of an answer. */
function placeOf(at: number): Fields {
  return { item_id: `msg_${at}`, output_index: 1, content_index: 0 };
}

function delta(text: string, at: number): Fields {
  return { type: "response.output_text.delta", ...placeOf(at), delta: text };
}

/** Its reasoning is encrypted; ids are the provider's own. */
function responseAnswer({ model }: Fields, text: string, at: number): Fields {
  return {
    id: `resp_of_the_provider_${at}`,
    object: "response",
    created_at: 1,
    status: "completed",
    model,
    store: false,
    previous_response_id: null,
    output: [
      {
        id: `rs_${at}`,
        type: "reasoning",
        summary: [],
        encrypted_content: `secret thoughts ${at}`,
      },
      {
        id: `msg_${at}`,
        type: "message",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text, annotations: [] }],
      },
    ],
    usage: {
      input_tokens: USAGE.input,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: USAGE.output,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: USAGE.input + USAGE.output,
    },
  };
}

function lastText(items: unknown): string {
  const last: unknown = Array.isArray(items) ? items.at(-1) : items;
  const content =
    typeof last === "object" && last !== null && "content" in last
      ? last.content
      : last;
  const [part] = Array.isArray(content) ? (content as unknown[]) : [content];
  return typeof part === "object" && part !== null && "text" in part
    ? String(part.text)
    : String(part);
}

async function readBody(request: IncomingMessage): Promise<Fields> {
  const parts: Buffer[] = [];
  for await (const part of request) {
    parts.push(part as Buffer);
  }
  return JSON.parse(Buffer.concat(parts).toString("utf8")) as Fields;
}
