import { randomSequence, zipfSequence } from "./zipf.ts";

export const LOADS = [
  "plain",
  "stream",
  "cached",
  "mix",
  "50k",
  "embeddings",
] as const;
export type Load = (typeof LOADS)[number];

export const CHAT_ALIAS = "bench-chat";
export const EMBEDDING_ALIAS = "bench-embedding";
export const MIX_CALLS = 2_000;
const MIX_PROMPTS = 200;
/** Coprime to the number of tenants, so that every tenant eventually sends every prompt. */
export const CACHED_PROMPTS = 16;
const LARGE_PROMPT_BYTES = 50_000;

/** Returns the bytes of the next request; the sequence is the same for the same salt. */
export type NextRequest = () => Buffer;

export interface RequestOptions {
  readonly load: Load;
  readonly port: number;
  /** Used in turn; a single empty one for a target without keys. */
  readonly keys: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  /** Part of every prompt, so that no response of an earlier run is in a cache. */
  readonly salt: string;
}

const COUNTER_DIGITS = 10;
const COUNTER = "#".repeat(COUNTER_DIGITS);

export function createRequests(options: RequestOptions): NextRequest {
  const { load, keys } = options;
  const templates = keys.map((key) => template(options, key));
  const numbers = numbersFor(load, options.salt);
  let sent = 0;
  return () => {
    const chosen = templates[sent % templates.length];
    if (chosen === undefined) {
      throw new Error("a load needs at least one key");
    }
    const request = Buffer.from(chosen.bytes);
    const digits = String(numbers(sent)).padStart(COUNTER_DIGITS, "0");
    request.write(digits, chosen.counterAt, "latin1");
    sent++;
    return request;
  };
}

/** The number of the n-th call's prompt: a new one or a repeated one. */
function numbersFor(load: Load, salt: string): (call: number) => number {
  switch (load) {
    case "cached":
      return (call) => call % CACHED_PROMPTS;
    case "mix": {
      const sequence = zipfSequence(
        MIX_CALLS,
        MIX_PROMPTS,
        randomSequence(salt),
      );
      return (call) => sequence[call % MIX_CALLS] ?? 0;
    }
    case "plain":
    case "stream":
    case "50k":
    case "embeddings":
      return (call) => call;
  }
}

function template(
  { load, port, headers, salt }: RequestOptions,
  key: string,
): { readonly bytes: Buffer; readonly counterAt: number } {
  const path =
    load === "embeddings" ? "/v1/embeddings" : "/v1/chat/completions";
  const body = JSON.stringify(bodyOf(load, salt));
  const lines = [
    `POST ${path} HTTP/1.1`,
    `host: 127.0.0.1:${port}`,
    "content-type: application/json",
    ...(key === "" ? [] : [`authorization: Bearer ${key}`]),
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  const bytes = Buffer.from(`${lines.join("\r\n")}\r\n\r\n${body}`);
  return { bytes, counterAt: bytes.indexOf(COUNTER) };
}

function bodyOf(load: Load, salt: string): object {
  const question = `${salt} ${COUNTER}: ${QUESTION}`;
  if (load === "embeddings") {
    return { model: EMBEDDING_ALIAS, input: question };
  }
  const content =
    load === "50k" ? `${question}\n${prose(LARGE_PROMPT_BYTES)}` : question;
  return {
    model: CHAT_ALIAS,
    messages: [
      { role: "system", content: "You answer in one short paragraph." },
      { role: "user", content },
    ],
    temperature: 0.2,
    max_tokens: 256,
    ...(load === "stream" ? { stream: true } : {}),
  };
}

const QUESTION =
  "How do I keep sourdough starter alive through a two-week holiday without a neighbour to feed it?";

const WORDS = (
  "the water of small rivers runs under old bridges and people who walk there in summer tell each other stories about " +
  "winter when boats were frozen between stones; nobody remembers exactly which year it was, but every letter says so"
).split(" ");

/** Text of ordinary words in pseudorandom order, the same each time. */
function prose(bytes: number): string {
  const random = randomSequence("prose");
  const words: string[] = [];
  for (let length = 0; length < bytes;) {
    const word = WORDS[Math.floor(random() * WORDS.length)] ?? "";
    words.push(word);
    length += word.length + 1;
  }
  return words.join(" ").slice(0, bytes);
}
