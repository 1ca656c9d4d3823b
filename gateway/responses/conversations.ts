import { randomUUID } from "node:crypto";
import type { GatewayConfig } from "../config/types.ts";
import {
  appendItems,
  deleteItem,
  findConversation,
  findItem,
  insertConversation,
  itemsOfConversation,
  updateConversation,
  type Addition,
  type ConversationRow,
  type NewItem,
} from "../database/conversations.ts";
import { deleteOwned } from "../database/owned.ts";
import { transaction, type Pool } from "../database/pool.ts";
import { recordOf, textOf, type JsonRecord } from "../../core/json.ts";
import { storable, withIds } from "./items.ts";
import { isOwnId, newId } from "./response-context.ts";
import { expiresAt, MAX_BYTES, MAX_ITEMS, tooLong } from "./limits.ts";
import { itemNotFound, notFound } from "./not-found.ts";
import { openJson, sealJson } from "./sealed-text.ts";

export interface Conversation {
  readonly id: string;
  /** Seconds. */
  readonly createdAt: number;
  readonly metadata: JsonRecord;
}

export interface ItemPage {
  readonly order: "asc" | "desc";
  /** The id of the last item of the page before. */
  readonly after: string | null;
  readonly limit: number;
}

/** Conversations in Postgres, encrypted, each for its owner only. All methods throw 404 for one that the owner does not have. */
export class Conversations {
  readonly #pool: Pool;
  readonly #config: () => GatewayConfig;

  constructor(pool: Pool, config: () => GatewayConfig) {
    this.#pool = pool;
    this.#config = config;
  }

  async create(
    owner: string,
    metadata: JsonRecord,
    items: readonly JsonRecord[],
  ): Promise<Conversation> {
    const id = newId("conv", randomUUID());
    const createdAt = Date.now();
    const sealed = this.#sealedMetadata(id, metadata);
    const expiresAt = this.#expiresAt();
    await insertConversation(
      this.#pool,
      { id, owner, createdAt, expiresAt, sealed },
      this.#sealedItems(id, this.#identified(items)),
    );
    return { id, createdAt: Math.floor(createdAt / 1_000), metadata };
  }

  async find(owner: string, id: string): Promise<Conversation> {
    return this.#opened(await this.#row(owner, id));
  }

  async update(
    owner: string,
    id: string,
    metadata: JsonRecord,
  ): Promise<Conversation> {
    const sealed = this.#sealedMetadata(id, metadata);
    const row = isOwnId("conv", id)
      ? await updateConversation(this.#pool, owner, id, sealed)
      : null;
    if (row === null) {
      throw notFound("conversation", id);
    }
    return this.#opened(row);
  }

  async remove(owner: string, id: string): Promise<void> {
    const isGone =
      isOwnId("conv", id) &&
      (await deleteOwned(this.#pool, "conversations", owner, id));
    if (!isGone) {
      throw notFound("conversation", id);
    }
  }

  /** Adds items; answers them with their ids. */
  async add(
    owner: string,
    id: string,
    items: readonly JsonRecord[],
  ): Promise<readonly JsonRecord[]> {
    const { bytes } = await this.#row(owner, id);
    if (bytes > MAX_BYTES) {
      throw tooLong("conversation");
    }
    const identified = this.#identified(items);
    const addition = this.addition(id, identified);
    await transaction(this.#pool, (client) =>
      appendItems(client, owner, addition),
    );
    return identified;
  }

  /** One page of its items, and one more if there is one. */
  async items(
    owner: string,
    id: string,
    { limit, ...page }: ItemPage,
  ): Promise<readonly JsonRecord[]> {
    await this.#row(owner, id);
    return this.#page(id, { ...page, limit: limit + 1 });
  }

  async item(owner: string, id: string, itemId: string): Promise<JsonRecord> {
    await this.#row(owner, id);
    const row = await findItem(this.#pool, id, storable(itemId));
    const item = row && openJson(row.sealed, id, this.#keys());
    if (item === null) {
      throw itemNotFound(itemId, id);
    }
    return item;
  }

  /** Answers the conversation. */
  async removeItem(
    owner: string,
    id: string,
    itemId: string,
  ): Promise<Conversation> {
    const row = await this.#row(owner, id);
    if (!(await deleteItem(this.#pool, id, storable(itemId)))) {
      throw itemNotFound(itemId, id);
    }
    return this.#opened(row);
  }

  /** All items, for a call. Throws 400 if there are too many. */
  async history(owner: string, id: string): Promise<readonly JsonRecord[]> {
    const { bytes } = await this.#row(owner, id, "conversation");
    if (bytes > MAX_BYTES) {
      throw tooLong("conversation");
    }
    const page = { order: "asc", after: null, limit: MAX_ITEMS + 1 } as const;
    const items = await this.#page(id, page);
    if (items.length > MAX_ITEMS) {
      throw tooLong("conversation");
    }
    return items;
  }

  /** Items, which have ids, for the end of a conversation. */
  addition(conversationId: string, items: readonly JsonRecord[]): Addition {
    return {
      conversationId,
      items: this.#sealedItems(conversationId, items),
      expiresAt: this.#expiresAt(),
    };
  }

  #identified(items: readonly JsonRecord[]): readonly JsonRecord[] {
    return withIds(items, newId("conv", randomUUID()));
  }

  async #row(
    owner: string,
    id: string,
    param?: string,
  ): Promise<ConversationRow> {
    const row = isOwnId("conv", id)
      ? await findConversation(this.#pool, owner, id)
      : null;
    if (row === null) {
      throw notFound("conversation", id, param);
    }
    return row;
  }

  async #page(id: string, page: ItemPage): Promise<readonly JsonRecord[]> {
    const after = page.after === null ? null : storable(page.after);
    const rows = await itemsOfConversation(this.#pool, id, { ...page, after });
    return rows.flatMap(({ sealed }) => {
      const item = openJson(sealed, id, this.#keys());
      return item === null ? [] : [item];
    });
  }

  #opened({ conversation_id, created_at, sealed }: ConversationRow) {
    const opened = openJson(sealed, conversation_id, this.#keys());
    return {
      id: conversation_id,
      createdAt: Math.floor(created_at.getTime() / 1_000),
      metadata: recordOf(opened?.["metadata"]),
    };
  }

  #sealedMetadata(id: string, metadata: JsonRecord): string {
    return sealJson({ metadata }, id, this.#keys()).sealed;
  }

  #sealedItems(
    conversationId: string,
    items: readonly JsonRecord[],
  ): readonly NewItem[] {
    return items.map((item) => ({
      id: storable(textOf(item["id"])),
      ...sealJson(item, conversationId, this.#keys()),
    }));
  }

  #expiresAt(): number | null {
    return expiresAt(this.#config().general.retention);
  }

  #keys() {
    return this.#config().general;
  }
}
