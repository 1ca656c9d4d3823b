import { timeOf, UNEXPIRED } from "./expiry.ts";
import { query, transaction, type Client, type Pool } from "./pool.ts";

export interface ConversationRow {
  readonly conversation_id: string;
  readonly created_at: Date;
  readonly bytes: number;
  readonly sealed: string;
}

interface ConversationItemRow {
  readonly place: number;
  readonly item_id: string;
  readonly sealed: string;
}

export interface NewItem {
  readonly id: string;
  readonly bytes: number;
  readonly sealed: string;
}

/** Items for the end of a conversation. */
export interface Addition {
  readonly conversationId: string;
  readonly items: readonly NewItem[];
  /** Of the conversation from now on, ms since the epoch; null: never. */
  readonly expiresAt: number | null;
}

const COLUMNS = "conversation_id, created_at, bytes, sealed";
const FOUND = `conversation_id = $1 AND owner = $2 AND ${UNEXPIRED}`;

export async function insertConversation(
  pool: Pool,
  row: {
    readonly id: string;
    readonly owner: string;
    readonly createdAt: number;
    readonly expiresAt: number | null;
    readonly sealed: string;
  },
  items: readonly NewItem[],
): Promise<void> {
  await transaction(pool, async (client) => {
    await query(
      client,
      "INSERT INTO conversations (conversation_id, owner, created_at, expires_at, sealed) VALUES ($1, $2, $3, $4, $5)",
      [
        row.id,
        row.owner,
        timeOf(row.createdAt),
        timeOf(row.expiresAt),
        row.sealed,
      ],
    );
    await insertItems(client, row.id, items);
  });
}

export async function findConversation(
  pool: Pool,
  owner: string,
  id: string,
): Promise<ConversationRow | null> {
  const [row] = await query<ConversationRow>(
    pool,
    `SELECT ${COLUMNS} FROM conversations WHERE ${FOUND}`,
    [id, owner],
  );
  return row ?? null;
}

/** Null: there is none. */
export async function updateConversation(
  pool: Pool,
  owner: string,
  id: string,
  sealed: string,
): Promise<ConversationRow | null> {
  const [row] = await query<ConversationRow>(
    pool,
    `UPDATE conversations SET sealed = $3 WHERE ${FOUND} RETURNING ${COLUMNS}`,
    [id, owner, sealed],
  );
  return row ?? null;
}

/** Adds items at the end, in a transaction. False: there is no such conversation any more. */
export async function appendItems(
  client: Client,
  owner: string,
  { conversationId, items, expiresAt }: Addition,
): Promise<boolean> {
  // Its lock keeps the items of two calls apart.
  const found = await query(
    client,
    `UPDATE conversations SET expires_at = $3 WHERE ${FOUND} RETURNING 1`,
    [conversationId, owner, timeOf(expiresAt)],
  );
  if (found.length > 0) {
    await insertItems(client, conversationId, items);
  }
  return found.length > 0;
}

async function insertItems(
  client: Client,
  id: string,
  items: readonly NewItem[],
): Promise<void> {
  if (items.length === 0) {
    return;
  }
  await query(
    client,
    `INSERT INTO conversation_items (conversation_id, item_id, bytes, sealed)
       SELECT $1, item_id, bytes, sealed
         FROM unnest($2::text[], $3::integer[], $4::text[]) WITH ORDINALITY AS i(item_id, bytes, sealed, at) ORDER BY at`,
    [
      id,
      items.map((item) => item.id),
      items.map(({ bytes }) => bytes),
      items.map(({ sealed }) => sealed),
    ],
  );
  await query(
    client,
    "UPDATE conversations SET bytes = bytes + $2 WHERE conversation_id = $1",
    [id, items.reduce((sum, { bytes }) => sum + bytes, 0)],
  );
}

/** A page of the items of a conversation. */
export async function itemsOfConversation(
  pool: Pool,
  id: string,
  page: {
    readonly order: "asc" | "desc";
    /** The id of the last item of the page before. */
    readonly after: string | null;
    readonly limit: number;
  },
): Promise<readonly ConversationItemRow[]> {
  const [sign, edge] = page.order === "asc" ? [">", "max"] : ["<", "min"];
  return query<ConversationItemRow>(
    pool,
    `SELECT place, item_id, sealed FROM conversation_items
       WHERE conversation_id = $1 AND ($2::text IS NULL OR place ${sign} (
         SELECT ${edge}(place) FROM conversation_items WHERE conversation_id = $1 AND item_id = $2))
       ORDER BY place ${page.order} LIMIT $3`,
    [id, page.after, page.limit],
  );
}

/** The newest item of an id. */
export async function findItem(
  pool: Pool,
  id: string,
  itemId: string,
): Promise<ConversationItemRow | null> {
  const [row] = await query<ConversationItemRow>(
    pool,
    "SELECT place, item_id, sealed FROM conversation_items WHERE conversation_id = $1 AND item_id = $2 ORDER BY place DESC LIMIT 1",
    [id, itemId],
  );
  return row ?? null;
}

/** False: there is none. */
export async function deleteItem(
  pool: Pool,
  id: string,
  itemId: string,
): Promise<boolean> {
  return transaction(pool, async (client) => {
    const gone = await query<{ bytes: number }>(
      client,
      "DELETE FROM conversation_items WHERE conversation_id = $1 AND item_id = $2 RETURNING bytes",
      [id, itemId],
    );
    await query(
      client,
      "UPDATE conversations SET bytes = bytes - $2 WHERE conversation_id = $1",
      [id, gone.reduce((sum, { bytes }) => sum + bytes, 0)],
    );
    return gone.length > 0;
  });
}
