import { z } from "zod";
import { out } from "../../admin/kinds/out.ts";
import type { JsonRecord } from "../../../core/json.ts";
import type { Conversation } from "../../responses/conversations.ts";
import {
  itemList,
  listOfItems,
  PAGE_FIELDS,
  pageOf,
  storedRoute,
} from "./stored-route.ts";

const named = { conversation_id: z.string() };
const namedItem = { ...named, item_id: z.string() };
const metadata = z
  .record(z.string(), z.string(), { error: "must map names to texts" })
  .nullish();
const MAX_ITEMS = 20;
const items = z
  .array(z.looseObject({}))
  .max(MAX_ITEMS, `must have at most ${MAX_ITEMS} items`);

const conversation = z
  .object({
    id: out.text,
    object: z.literal("conversation"),
    created_at: out.count,
    metadata: z.record(z.string(), z.unknown()),
  })
  .meta({ id: "Conversation" });

const item = z
  .looseObject({ id: out.text, type: out.text })
  .meta({ id: "ConversationItem" });

function shown({ id, createdAt, metadata }: Conversation) {
  return {
    id,
    object: "conversation",
    created_at: createdAt,
    metadata,
  };
}

export const createConversation = storedRoute(
  "POST /v1/conversations",
  {
    summary:
      "Create a conversation, which calls of the Responses API continue by its id.",
    input: z.object({ items: items.nullish(), metadata }),
    answer: conversation,
  },
  async ({ responses }, owner, input) =>
    shown(
      await responses.conversations.create(
        owner,
        input.metadata ?? {},
        input.items ?? [],
      ),
    ),
);

export const getConversation = storedRoute(
  "GET /v1/conversations/:conversation_id",
  {
    summary: "Get a conversation.",
    input: z.object(named),
    answer: conversation,
  },
  async ({ responses }, owner, { conversation_id }) =>
    shown(await responses.conversations.find(owner, conversation_id)),
);

export const updateConversation = storedRoute(
  "POST /v1/conversations/:conversation_id",
  {
    summary: "Replace the metadata of a conversation.",
    input: z.object({ ...named, metadata }),
    answer: conversation,
  },
  async ({ responses }, owner, { conversation_id, metadata }) =>
    shown(
      await responses.conversations.update(
        owner,
        conversation_id,
        metadata ?? {},
      ),
    ),
);

export const deleteConversation = storedRoute(
  "DELETE /v1/conversations/:conversation_id",
  {
    summary:
      "Delete a conversation with its items; responses that were created with it stay.",
    input: z.object(named),
    answer: z.object({
      id: out.text,
      object: z.literal("conversation.deleted"),
      deleted: z.literal(true),
    }),
  },
  async ({ responses }, owner, { conversation_id: id }) => {
    await responses.conversations.remove(owner, id);
    return { id, object: "conversation.deleted", deleted: true };
  },
);

export const createItems = storedRoute(
  "POST /v1/conversations/:conversation_id/items",
  {
    summary: "Add items at the end of a conversation.",
    input: z.object({ ...named, items: items.min(1) }),
    answer: itemList,
  },
  async ({ responses }, owner, input) => {
    const { conversation_id: id, items: added } = input;
    const created = await responses.conversations.add(
      owner,
      id,
      added as readonly JsonRecord[],
    );
    return listOfItems(created, created.length);
  },
);

export const listItems = storedRoute(
  "GET /v1/conversations/:conversation_id/items",
  {
    summary: "List the items of a conversation.",
    input: z.object({ ...named, ...PAGE_FIELDS }),
    answer: itemList,
  },
  async ({ responses }, owner, { conversation_id, ...page }) => {
    const asked = pageOf(page);
    return listOfItems(
      await responses.conversations.items(owner, conversation_id, asked),
      asked.limit,
    );
  },
);

export const getItem = storedRoute(
  "GET /v1/conversations/:conversation_id/items/:item_id",
  {
    summary: "Get an item of a conversation.",
    input: z.object(namedItem),
    answer: item,
  },
  ({ responses }, owner, { conversation_id, item_id }) =>
    responses.conversations.item(owner, conversation_id, item_id),
);

export const deleteItem = storedRoute(
  "DELETE /v1/conversations/:conversation_id/items/:item_id",
  {
    summary: "Delete an item of a conversation.",
    input: z.object(namedItem),
    answer: conversation,
  },
  async ({ responses }, owner, { conversation_id, item_id }) =>
    shown(
      await responses.conversations.removeItem(owner, conversation_id, item_id),
    ),
);
