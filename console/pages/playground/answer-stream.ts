import { Readable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import { Failure } from "../../../core/failure.ts";
import type { Caller } from "../../sign-in/user-sign-in.ts";
import { callHref } from "../calls/call-choice.ts";
import { NO_GATEWAY, type NounContext } from "../nouns/noun-context.ts";
import { takeForm } from "./accept-files.ts";
import type { AnswerSlots } from "./answer-slots.ts";
import { askModel, MAX_ANSWER_MS } from "./ask-model.ts";
import {
  chatBody,
  readPlaygroundForm,
  type Mistakes,
  type PlaygroundForm,
} from "./playground-form.ts";
import { viewAnswer } from "./playground-view.ts";

export interface Playground extends NounContext {
  readonly slots: AnswerSlots;
}

/**
 * Streams the answer of the form's first model as `text/event-stream`: {kind: "started" | "text" | "reasoning" | "ended"}, the
 * last with the answer in words.
 */
export async function streamAnswer(
  request: FastifyRequest,
  reply: FastifyReply,
  playground: Playground,
  withSession: boolean,
): Promise<FastifyReply> {
  const form = await readPlaygroundForm(takeForm(request));
  const mistakes = { ...form.mistakes, ...mistakeOfKey(form, withSession) };
  const [mistake] = Object.values(mistakes);
  if (mistake !== undefined) {
    const error = { message: mistake, code: "400" };
    return reply.code(400).send({ error, mistakes });
  }
  const caller = callerOf(request);
  const release = playground.slots.take(caller.name, 1);
  const left = leaving(reply, release);
  const [model = ""] = form.models;
  const key = withSession ? null : form.key;
  const question = { key, user: caller.name, model, prompt: form.prompt };
  const pieces = askWith(playground, question, left);
  return reply
    .type("text/event-stream")
    .header("x-accel-buffering", "no")
    .send(Readable.from(eventsOf(pieces, left)));
}

interface Question {
  /** null: the master key. */
  readonly key: string | null;
  /** The user of the console. */
  readonly user: string;
  readonly model: string;
  readonly prompt: PlaygroundForm["prompt"];
}

/** Asks a model with a key, or with the master key for a user of the console, who is the call's end user. */
export function askWith(
  { api }: Playground,
  { key, user, model, prompt }: Question,
  left: AbortSignal,
): ReturnType<typeof askModel> {
  if (api.address === "") {
    throw new Failure(NO_GATEWAY);
  }
  const body = { ...chatBody(model, prompt), model };
  return key === null
    ? // Unlike the field `user`, the provider does not receive it.
      askModel(api, { ...body, litellm_metadata: { user } }, left)
    : askModel(api.as(key), body, left);
}

async function* eventsOf(
  pieces: ReturnType<typeof askModel>,
  left: AbortSignal,
): AsyncGenerator<string> {
  try {
    let next = await pieces.next();
    while (next.done !== true) {
      const { value } = next;
      yield eventOf(
        value.kind === "started"
          ? { kind: "started", call: callHref(value.callId) }
          : value,
      );
      next = await pieces.next();
    }
    yield eventOf({ kind: "ended", answer: viewAnswer(next.value) });
  } catch (error) {
    if (!left.aborted) {
      throw error;
    }
  }
}

function eventOf(event: object): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

/** Aborted once the browser has the answer, or has left; calls `release` then. */
export function leaving(reply: FastifyReply, release: () => void): AbortSignal {
  const left = new AbortController();
  const leave = () => {
    release();
    left.abort();
  };
  if (reply.raw.destroyed) {
    leave();
  } else {
    reply.raw.once("close", leave);
    // A browser that stops reading leaves, too.
    reply.raw.setTimeout(2 * MAX_ANSWER_MS);
  }
  return left.signal;
}

export function callerOf({ requester }: FastifyRequest): Caller {
  if (requester === null) {
    throw new Error("a route of the playground requires no role");
  }
  return requester;
}

export function mistakeOfKey(
  { key, mistakes }: PlaygroundForm,
  withSession: boolean,
): Mistakes {
  return key === null && !withSession && mistakes.key === undefined
    ? { key: "Key is required: your role may not make calls with the session." }
    : {};
}
