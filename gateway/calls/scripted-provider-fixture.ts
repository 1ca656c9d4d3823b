import { createServer, type ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { listen } from "../../test/servers/ports.ts";

/** How a stream of the first deployment ends: by an error event, a reset connection, or in order but too early, also within an event. */
export type Fault = "error" | "reset" | "end" | "half";

/** What was sent before that. */
type Sent = "opening" | "content";

const USAGE = { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 };
/** The input tokens that a stream of Anthropic's shape reports at its start. */
export const STARTED_INPUT_TOKENS = 7;

/** The events of a stream in the wire format of a path. */
interface Format {
  /** Sent before anything of the answer. */
  readonly opening: readonly object[];
  content(text: string): object;
  readonly rest: readonly object[];
  readonly error: object;
}

const CHAT_HEAD = { id: "c1", object: "chat.completion.chunk", model: "m" };
const chat = (choice: object) => ({
  ...CHAT_HEAD,
  choices: [{ index: 0, finish_reason: null, ...choice }],
});
const MESSAGE = {
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "m",
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: STARTED_INPUT_TOKENS, output_tokens: 1 },
};
const RESPONSE = { id: "resp_1", object: "response", model: "m", output: [] };
const ITEM = { id: "it_1", type: "message", role: "assistant", content: [] };
const BROKEN = { message: "The model broke down.", code: 503 };

const FORMATS: Readonly<Record<string, Format>> = {
  "/chat/completions": {
    opening: [
      // Azure's filter results, and a chunk without usage.
      { ...CHAT_HEAD, choices: [], prompt_filter_results: [] },
      chat({ delta: { role: "assistant", content: "", refusal: null } }),
      chat({ delta: { role: "assistant", content: null, tool_calls: [] } }),
    ],
    content: (content) => chat({ delta: { content } }),
    rest: [
      chat({ delta: {}, finish_reason: "stop" }),
      { ...CHAT_HEAD, choices: [], usage: USAGE },
    ],
    error: { error: BROKEN },
  },
  "/completions": {
    opening: [chat({ text: "" })],
    content: (text) => chat({ text }),
    rest: [
      chat({ text: "", finish_reason: "stop" }),
      { ...CHAT_HEAD, choices: [], usage: USAGE },
    ],
    error: { error: BROKEN },
  },
  "/responses": {
    opening: [
      { type: "response.created", response: RESPONSE },
      { type: "response.in_progress", response: RESPONSE },
      { type: "response.output_item.added", output_index: 0, item: ITEM },
      {
        type: "response.content_part.added",
        item_id: "it_1",
        part: { type: "output_text", text: "", annotations: [] },
      },
    ],
    content: (delta) => ({
      type: "response.output_text.delta",
      item_id: "it_1",
      delta,
    }),
    rest: [
      {
        type: "response.completed",
        response: {
          ...RESPONSE,
          status: "completed",
          usage: { input_tokens: 7, output_tokens: 2, total_tokens: 9 },
        },
      },
    ],
    error: {
      type: "response.failed",
      response: {
        ...RESPONSE,
        status: "failed",
        error: { code: "server_error", message: BROKEN.message },
      },
    },
  },
  "/messages": {
    opening: [
      { type: "message_start", message: MESSAGE },
      { type: "ping" },
      {
        type: "content_block_start",
        index: 0,
        content_block: { type: "text", text: "" },
      },
    ],
    content: (text) => ({
      type: "content_block_delta",
      index: 0,
      delta: { type: "text_delta", text },
    }),
    rest: [
      { type: "content_block_stop", index: 0 },
      {
        type: "message_delta",
        delta: { stop_reason: "end_turn", stop_sequence: null },
        usage: { output_tokens: 2 },
      },
      { type: "message_stop" },
    ],
    error: {
      type: "error",
      error: { type: "overloaded_error", message: "Overloaded" },
    },
  },
};

/** Bare paths of the formats, as `/first/v1/chat/completions` ends. */
function formatOf(path: string): Format {
  const name = Object.keys(FORMATS).find((end) => path.endsWith(end));
  const format = FORMATS[name ?? ""];
  if (format === undefined) {
    throw new Error(`no format for ${path}`);
  }
  return format;
}

export interface ScriptedProvider {
  /** Of the deployment that fails as `script` says. */
  readonly first: string;
  /** Of the one that answers. */
  readonly second: string;
  /** The next streams of the first deployment. */
  script: { readonly sent: Sent; readonly fault: Fault };
  /** Paths called, oldest first. */
  readonly called: string[];
  close(): Promise<void>;
}

/** A provider of all wire formats with two addresses: the first fails, the second answers. */
export async function startScriptedProvider(): Promise<ScriptedProvider> {
  const server = createServer((request, response) => {
    const path = request.url ?? "";
    scripted.called.push(path);
    request.resume().once("end", () => {
      const answered = path.startsWith("/first")
        ? fail(response, path, scripted.script)
        : answer(response, path);
      answered.catch(() => response.destroy());
    });
  });
  const port = await listen(server);
  const scripted: ScriptedProvider = {
    first: `http://127.0.0.1:${port}/first`,
    second: `http://127.0.0.1:${port}/second`,
    script: { sent: "opening", fault: "error" },
    called: [],
    async close() {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
    },
  };
  return scripted;
}

async function fail(
  response: ServerResponse,
  path: string,
  { sent, fault }: ScriptedProvider["script"],
): Promise<void> {
  const { opening, content, error } = formatOf(path);
  for (const event of sent === "content"
    ? [...opening, content("first ")]
    : opening) {
    await write(response, event);
  }
  switch (fault) {
    case "error":
      await write(response, error);
      response.end();
      break;
    case "reset":
      response.destroy();
      break;
    case "end":
      response.end();
      break;
    case "half":
      response.end(`data: ${JSON.stringify(content("half")).slice(0, -9)}`);
      break;
  }
}

async function answer(response: ServerResponse, path: string): Promise<void> {
  const { opening, content, rest } = formatOf(path);
  for (const event of [...opening, content("second "), ...rest]) {
    await write(response, event);
  }
  response.end(path.endsWith("completions") ? "data: [DONE]\n\n" : "");
}

/** Each event as a piece of its own. */
async function write(response: ServerResponse, event: object): Promise<void> {
  if (!response.headersSent) {
    response.writeHead(200, { "content-type": "text/event-stream" });
  }
  const name = "type" in event ? `event: ${String(event.type)}\n` : "";
  response.write(`${name}data: ${JSON.stringify(event)}\n\n`);
  await sleep(5);
}
