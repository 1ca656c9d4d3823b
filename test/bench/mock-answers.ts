// The prepared responses of the benchmark's provider.

/** Content chunks of a stream, without the final one. */
export const CHUNKS_PER_STREAM = 64;
const DIMENSIONS = 1_536;

const HEAD = {
  id: "chatcmpl-benchmark",
  created: 1_700_000_000,
  model: "gpt-4o-mini",
};
export const CHAT_USAGE = {
  prompt_tokens: 40,
  completion_tokens: 64,
  total_tokens: 104,
};
const EMBEDDING_USAGE = { prompt_tokens: 40, total_tokens: 40 };

function jsonAnswer(body: unknown): Buffer {
  const text = JSON.stringify(body);
  return Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
}

export const CHAT_ANSWER = jsonAnswer({
  ...HEAD,
  object: "chat.completion",
  choices: [
    {
      index: 0,
      message: {
        role: "assistant",
        content: Array.from(
          { length: CHUNKS_PER_STREAM },
          (_, at) => `word${at}`,
        ).join(" "),
      },
      finish_reason: "stop",
    },
  ],
  usage: CHAT_USAGE,
});

export const EMBEDDING_ANSWER = jsonAnswer({
  object: "list",
  model: "text-embedding-3-small",
  data: [
    {
      object: "embedding",
      index: 0,
      embedding: Array.from({ length: DIMENSIONS }, (_, at) =>
        Number(Math.sin(at + 1).toFixed(8)),
      ),
    },
  ],
  usage: EMBEDDING_USAGE,
});

export const MODELS_ANSWER = jsonAnswer({
  object: "list",
  data: [{ id: HEAD.model, object: "model" }],
});

export const STREAM_HEAD = Buffer.from(
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n",
);

/** Every event of a stream, framed for `transfer-encoding: chunked`; the last one ends the response. */
export const STREAM_CHUNKS: readonly Buffer[] = [
  ...Array.from({ length: CHUNKS_PER_STREAM }, (_, at) =>
    event({
      choices: [
        { index: 0, delta: { content: `word${at} ` }, finish_reason: null },
      ],
    }),
  ),
  event({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] }),
  event({ choices: [], usage: CHAT_USAGE }),
  Buffer.from(`${framed("data: [DONE]\n\n")}0\r\n\r\n`),
];

function event(fields: object): Buffer {
  return Buffer.from(
    framed(
      `data: ${JSON.stringify({ ...HEAD, object: "chat.completion.chunk", ...fields })}\n\n`,
    ),
  );
}

function framed(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}
