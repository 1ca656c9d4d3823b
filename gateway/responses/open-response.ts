import type { Caller } from "../access/callers.ts";
import type { CallBody } from "../calls/body.ts";
import type { SealingKeys } from "../config/sealed.ts";
import type { GatewayConfig } from "../config/types.ts";
import { invalidParam } from "../http/errors.ts";
import { listOf, recordOf, textOf, type JsonRecord } from "../../core/json.ts";
import { isCompaction, openedCompaction } from "./compaction.ts";
import { asInput, itemsOf, referenceIn } from "./items.ts";
import {
  newId,
  type BackgroundRun,
  type ConnectionMemory,
  type History,
  type ResponseContext,
} from "./response-context.ts";
import { MAX_BYTES, tooLong } from "./limits.ts";
import { itemNotFound } from "./not-found.ts";
import { ownerOf } from "./owner.ts";
import type { ResponseStore } from "./store.ts";

/** A call of the Responses API as it goes on. */
export interface OpenedResponse {
  /** With everything that it continues in its `input`, and without the fields that say so. */
  readonly body: CallBody;
  /** null: it continues nothing and nothing of it is stored. */
  readonly context: ResponseContext | null;
}

interface OpenOptions {
  /** Its client polls for it; null: it waits for the answer. */
  readonly background?: BackgroundRun | null;
  /** Of the connection that it came over; null: it came over HTTP. */
  readonly memory?: ConnectionMemory | null;
  /** Nothing answers its input, which may be empty. */
  readonly mayBeEmpty?: boolean;
}

interface Ports {
  readonly config: Pick<GatewayConfig, "general">;
  readonly responses: ResponseStore;
}

/**
 * Reads what a call continues (`previous_response_id`, `conversation`, items by their ids). Any model can continue any
 * response: its whole conversation is sent. Throws 404 for what the caller does not have, and 400 for what cannot be continued.
 */
export async function openResponse(
  { config, responses }: Ports,
  caller: Caller,
  callId: string,
  body: CallBody,
  { background = null, memory = null, mayBeEmpty = false }: OpenOptions = {},
): Promise<OpenedResponse> {
  const { storeResponses } = config.general;
  const asked = stateOf(body);
  const stores = storeResponses && body["store"] !== false;
  const remembered = memory?.find(asked.previousId ?? "") ?? null;
  rejectUnfit(asked, body, storeResponses || remembered !== null);
  const id = newId("resp", callId);
  const owner = ownerOf(caller);
  const history = remembered ?? (await historyOf(responses, owner, asked));
  const whole = withSummaries(body["input"], owner, config.general);
  const input = await resolved(responses, owner, history, whole, {
    storeResponses,
  });
  const isSame = input === body["input"] && history === null;
  const {
    previous_response_id: _previous,
    conversation: _conversation,
    background: _background,
    ...rest
  } = body;
  const items = history?.items ?? [];
  // What it continues is not stored, so it is stored with the response.
  const isWhole = remembered !== null && stores;
  if (!mayBeEmpty && items.length + listOf(input).length === 0) {
    rejectEmpty(input);
  }
  return {
    body: isSame
      ? { ...rest, model: body.model }
      : {
          ...rest,
          model: body.model,
          input: [...items, ...itemsOf(input)],
        },
    context:
      !stores && history === null && memory === null
        ? null
        : {
            id,
            owner,
            previousId: asked.previousId,
            rootId: (isWhole ? null : history?.rootId) ?? id,
            conversationId: asked.conversationId,
            continuesStored: history !== null && remembered === null,
            historyLength: isWhole ? 0 : items.length,
            session: history?.session ?? null,
            stores,
            background,
            memory,
          },
  };
}

function rejectEmpty(input: unknown): void {
  if (typeof input !== "string") {
    throw invalidParam(
      "input",
      "must have an item: there is nothing to answer.",
    );
  }
}

interface AskedState {
  readonly previousId: string | null;
  readonly conversationId: string | null;
  readonly background: boolean;
}

function stateOf(body: CallBody): AskedState {
  const { conversation } = body;
  return {
    previousId: textOf(body["previous_response_id"]) || null,
    conversationId:
      textOf(conversation) || textOf(recordOf(conversation)["id"]) || null,
    background: body["background"] === true,
  };
}

function rejectUnfit(
  { previousId, conversationId, background }: AskedState,
  { store }: CallBody,
  storeResponses: boolean,
): void {
  const param = background
    ? "background"
    : conversationId !== null
      ? "conversation"
      : previousId !== null
        ? "previous_response_id"
        : null;
  if (param !== null && !storeResponses) {
    throw invalidParam(
      param,
      "requires stored responses, which this gateway does not store (`store_responses: false`). Omit it, and send the whole conversation in `input`.",
    );
  }
  if (previousId !== null && conversationId !== null) {
    throw invalidParam(
      "previous_response_id",
      "and `conversation` exclude each other: send one of them.",
    );
  }
  if (background && store === false) {
    throw invalidParam(
      "background",
      "requires a stored response: omit `store: false`.",
    );
  }
}

async function historyOf(
  responses: ResponseStore,
  owner: string,
  { previousId, conversationId }: AskedState,
): Promise<History | null> {
  if (previousId !== null) {
    return responses.historyOf(owner, previousId);
  }
  if (conversationId === null) {
    return null;
  }
  const items = await responses.conversations.history(owner, conversationId);
  return {
    items: items.map(asInput),
    rootId: conversationId,
    session: { key: conversationId, isNamed: true },
  };
}

/** The input with compactions as their summaries; the same if there are none. */
function withSummaries(
  input: unknown,
  owner: string,
  keys: SealingKeys,
): unknown {
  const items = listOf(input);
  return items.some(isCompaction)
    ? items.map((item, at) =>
        isCompaction(item)
          ? openedCompaction(item, `input[${at}]`, owner, keys)
          : item,
      )
    : input;
}

/** The input with the items that it refers to by their ids; the same if there are none. */
async function resolved(
  responses: ResponseStore,
  owner: string,
  history: History | null,
  input: unknown,
  { storeResponses }: { readonly storeResponses: boolean },
): Promise<unknown> {
  const references = listOf(input).flatMap((item) => referenceIn(item) ?? []);
  if (references.length === 0 || !storeResponses) {
    return input;
  }
  const known = new Map<string, JsonRecord>(
    (history?.items ?? []).map((item) => [textOf(item["id"]), item]),
  );
  const missing = references.filter((id) => !known.has(id));
  const found =
    missing.length === 0
      ? new Map<string, JsonRecord>()
      : await responses.itemsById(owner, missing);
  const targets: JsonRecord[] = [];
  const items = listOf(input).map((item, at) => {
    const id = referenceIn(item);
    if (id === null) {
      return item;
    }
    const target = known.get(id) ?? found.get(id);
    if (target === undefined) {
      throw itemNotFound(id, "the stored responses", `input[${at}]`);
    }
    targets.push(target);
    return target;
  });
  rejectTooLong(targets);
  return items;
}

/** Throws 400 for items that are too long together, each as often as the input refers to it: a short body can refer to one many times. */
function rejectTooLong(targets: readonly JsonRecord[]): void {
  const sizes = new Map(
    [...new Set(targets)].map((target) => [
      target,
      JSON.stringify(target).length,
    ]),
  );
  const bytes = targets.reduce(
    (sum, target) => sum + (sizes.get(target) ?? 0),
    0,
  );
  if (bytes > MAX_BYTES) {
    throw tooLong("input");
  }
}
