import { createInterface } from "node:readline/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { SseParser } from "../core/sse.ts";
import { Failure } from "../core/failure.ts";
import { grouped, money } from "../core/words.ts";
import type { AdminApi } from "../supervisor/gateway/admin-api.ts";
import { listModels, modelToTry } from "../supervisor/gateway/first-call.ts";
import { calls } from "../supervisor/gateway/usage.ts";
import { findGateway, gatewayArg, locateGateway } from "./gateway-client.ts";
import { readInput } from "./read-input.ts";
import { complain, paint, print } from "./terminal.ts";
import { defineVerb, UsageError } from "./verb.ts";

interface Message {
  readonly role: "user" | "assistant";
  readonly content: string;
}

interface Gateway extends ReturnType<typeof locateGateway> {
  readonly api: AdminApi;
}

/** What an answer was, and its call. */
interface Answer {
  readonly content: string;
  readonly callId: string;
}

export const chat = defineVerb({
  name: "chat",
  description:
    "Chat with a model: one prompt, or a conversation in the terminal. Shows what each answer costs.",
  example: 'hearth chat hearth-echo "Hello, Hearth"',
  args: {
    model: {
      type: "positional",
      required: false,
      description: "Alias (default: the first that is ready)",
    },
    prompt: {
      type: "positional",
      required: false,
      description: "Prompt (default: lines of the terminal or of a pipe)",
    },
    json: {
      type: "boolean",
      description: "Print the answer, its tokens and cost as JSON",
    },
    ...gatewayArg,
  },
  run: async ({ model: named, prompt, json, url }) => {
    const gateway = { ...locateGateway(url), api: findGateway(url) };
    const model = named ?? modelToTry(await listModels(gateway.api));
    if (model === undefined) {
      throw new Failure(
        "no model is ready: run `hearth models discover` to find local ones, or `hearth models key openai` to store a provider's key; `hearth models list` shows what each model needs.",
      );
    }
    if (prompt !== undefined || !process.stdin.isTTY) {
      const content = prompt ?? (await readInput(process.stdin));
      if (content.trim() === "") {
        throw new UsageError(
          'the prompt is empty: give one, for example `hearth chat hearth-echo "Hello"`, or pipe it.',
        );
      }
      await exchange(
        gateway,
        model,
        [{ role: "user", content }],
        json === true,
      );
      return 0;
    }
    return converse(gateway, model, json === true);
  },
});

/** Asks and answers in turn until the input ends. An answer that fails leaves the conversation as it was. */
async function converse(
  gateway: Gateway,
  model: string,
  asJson: boolean,
): Promise<0> {
  // With --json, standard output has only the answers.
  const output = asJson ? process.stderr : process.stdout;
  output.write(
    `${paint("soft", `Chat with ${model}. Ctrl-D ends it.`, output)}\n`,
  );
  const lines = createInterface({
    input: process.stdin,
    output,
    prompt: "> ",
  });
  const messages: Message[] = [];
  lines.prompt();
  for await (const line of lines) {
    if (line.trim() !== "") {
      const asked = [...messages, { role: "user", content: line } as const];
      try {
        const content = await exchange(gateway, model, asked, asJson);
        messages.splice(0, Infinity, ...asked, { role: "assistant", content });
      } catch (error) {
        complain([error instanceof Error ? error.message : String(error)]);
      }
    }
    lines.prompt();
  }
  return 0;
}

/** Sends a conversation, prints the answer as it arrives and what it cost, and returns it. */
async function exchange(
  gateway: Gateway,
  model: string,
  messages: readonly Message[],
  asJson: boolean,
): Promise<string> {
  const write = (text: string) => {
    if (!asJson) {
      process.stdout.write(text);
    }
  };
  const { content, callId } = await streamChat(gateway, model, messages, write);
  const row = await recordedCall(gateway.api, callId);
  if (asJson) {
    print(
      JSON.stringify(
        {
          model,
          content,
          call_id: callId,
          total_tokens: row?.total_tokens ?? null,
          cost: row?.spend ?? null,
        },
        null,
        2,
      ),
    );
  } else {
    write("\n");
    if (row !== undefined) {
      print(
        paint(
          "soft",
          `${grouped(row.total_tokens)} tokens, ${money(row.spend)}`,
        ),
      );
    }
  }
  return content;
}

const chunk = z.looseObject({
  choices: z
    .array(
      z.looseObject({
        delta: z.looseObject({ content: z.string().nullish() }).optional(),
      }),
    )
    .optional(),
  error: z.looseObject({ message: z.string() }).optional(),
});

const refusal = z.looseObject({
  error: z.looseObject({ message: z.string() }),
});

async function streamChat(
  { address, masterKey }: Gateway,
  model: string,
  messages: readonly Message[],
  write: (text: string) => void,
): Promise<Answer> {
  const response = await fetch(`${address}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${masterKey}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ model, messages, stream: true }),
  });
  if (!response.ok || response.body === null) {
    const { error } = refusal.parse(await response.json());
    throw new Failure(error.message);
  }
  const parser = new SseParser();
  let content = "";
  for await (const bytes of response.body) {
    for (const { data } of parser.push(bytes)) {
      if (data === "[DONE]") {
        continue;
      }
      const { choices = [], error } = chunk.parse(JSON.parse(data));
      if (error !== undefined) {
        throw new Failure(error.message);
      }
      const text = choices[0]?.delta?.content ?? "";
      content += text;
      write(text);
    }
  }
  return { content, callId: response.headers.get("x-hearth-call-id") ?? "" };
}

const RECORD_TRIES = 20;
const RECORD_WAIT_MS = 100;

/** The row of a call in the ledger, which follows the answer after a moment; undefined while the database is unavailable. */
async function recordedCall(gateway: AdminApi, callId: string) {
  const path = `/spend/logs?request_id=${encodeURIComponent(callId)}`;
  for (let tries = 0; tries < RECORD_TRIES; tries += 1) {
    const [row] = calls.parse(await gateway.ask("GET", path).catch(() => []));
    if (row !== undefined) {
      return row;
    }
    await sleep(RECORD_WAIT_MS);
  }
  return undefined;
}
