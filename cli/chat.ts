import { createInterface } from "node:readline/promises";
import { Failure, textOf } from "../core/failure.ts";
import { grouped, money } from "../core/words.ts";
import { Refusal, type AdminApi } from "../supervisor/gateway/admin-api.ts";
import { listModels, modelToTry } from "../supervisor/gateway/first-call.ts";
import { recordedCall } from "../supervisor/gateway/recorded-call.ts";
import { streamChat } from "../supervisor/gateway/stream-chat.ts";
import { findGateway, gatewayArg } from "./gateway-client.ts";
import { readInput } from "./read-input.ts";
import { complain, paint, print, printJson, printPart } from "./terminal.ts";
import { unknownModel } from "./unknown-models.ts";
import { defineVerb, UsageError } from "./verb.ts";

interface Message {
  readonly role: "user" | "assistant";
  readonly content: string;
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
    const gateway = findGateway(url);
    const model = named ?? modelToTry(await listModels(gateway));
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
  gateway: AdminApi,
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
        complain([textOf(error)]);
      }
    }
    lines.prompt();
  }
  return 0;
}

/** Sends a conversation, prints the answer as it arrives and what it cost, and returns it. */
async function exchange(
  gateway: AdminApi,
  model: string,
  messages: readonly Message[],
  asJson: boolean,
): Promise<string> {
  const write = (text: string) => {
    if (!asJson) {
      printPart(text);
    }
  };
  const { content, callId } = await answerOf(
    gateway,
    model,
    messages,
    write,
  ).catch((error: unknown) => explain(error, gateway, model));
  const row = await recordedCall(gateway, callId);
  if (asJson) {
    printJson({
      model,
      content,
      call_id: callId,
      total_tokens: row?.total_tokens ?? null,
      cost: row?.spend ?? null,
    });
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

/** Throws the error; for a model that does not exist, one that says so in the words of commands. */
async function explain(
  error: unknown,
  gateway: AdminApi,
  model: string,
): Promise<never> {
  if (error instanceof Refusal && error.param === "model") {
    const known = (await listModels(gateway)).map(({ id }) => id);
    if (!known.includes(model)) {
      throw unknownModel(model, known);
    }
  }
  throw error;
}

async function answerOf(
  gateway: AdminApi,
  model: string,
  messages: readonly Message[],
  write: (text: string) => void,
): Promise<Answer> {
  const { signal } = new AbortController();
  let content = "";
  let callId = "";
  for await (const event of streamChat(gateway, { model, messages }, signal)) {
    if (event.kind === "started") {
      ({ callId } = event);
    } else if (event.kind === "text") {
      content += event.text;
      write(event.text);
    }
  }
  return { content, callId };
}
