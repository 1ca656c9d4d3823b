import type { GatewayConfig } from "../config/types.ts";
import type { Addition } from "../database/conversations.ts";
import type { Pool } from "../database/pool.ts";
import {
  chainOf,
  deleteResponse,
  endResponse,
  extendRunning,
  findResponse,
  insertResponse,
  responsesWithItems,
  type ResponseRow,
} from "../database/responses.ts";
import { CallError } from "../http/errors.ts";
import {
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../providers/json.ts";
import { markedReasoning } from "../providers/reasoning-origin.ts";
import type { Session } from "../routing/strategies.ts";
import { Conversations } from "./conversations.ts";
import { asInput, idsOf, storable, withIds } from "./items.ts";
import { isOwnId, type KeptResponse } from "./kept.ts";
import { expiresAt, MAX_BYTES, MAX_RESPONSES, tooLong } from "./limits.ts";
import { notFound } from "./not-found.ts";
import { openJson, sealJson } from "./sealed-text.ts";

/** A gateway extends the lease of its responses in background far more often. */
export const LEASE_MS = 15_000;

/** What is stored of a call, besides where it belongs. */
export interface Content {
  /** Of this call alone. */
  readonly input: readonly JsonRecord[];
  /** As the client got it. */
  readonly response: JsonRecord;
  /** The deployment that answered; null: none has. */
  readonly modelId: string | null;
  /** The session of the first response. */
  readonly session: Session | null;
}

export interface StoredResponse extends Content {
  readonly id: string;
  readonly conversationId: string | null;
}

/** What a call continues. */
export interface History {
  readonly items: readonly JsonRecord[];
  readonly rootId: string;
  readonly session: Session | null;
}

/** Responses in Postgres, encrypted, each for its owner only: the same for every gateway. Throws `DatabaseUnavailable`. */
export class ResponseStore {
  readonly conversations: Conversations;
  readonly #pool: Pool;
  readonly #config: () => GatewayConfig;

  constructor(pool: Pool, config: () => GatewayConfig) {
    this.#pool = pool;
    this.#config = config;
    this.conversations = new Conversations(pool, config);
  }

  /** Stores the response of a call, and adds its items to its conversation. */
  async save(kept: KeptResponse, content: Content): Promise<void> {
    const row = this.#rowOf(kept, content);
    const addition = this.#additionOf(kept, content);
    if (kept.background === null) {
      const times = { ...this.#times(), runsUntil: null };
      await insertResponse(this.#pool, { ...row, ...times }, addition);
    } else {
      await endResponse(this.#pool, row, addition);
    }
  }

  /** Stores a response that will be answered in background. */
  async queue(kept: KeptResponse, content: Content): Promise<void> {
    const row = this.#rowOf(kept, content);
    const times = { ...this.#times(), runsUntil: Date.now() + LEASE_MS };
    await insertResponse(this.#pool, { ...row, ...times }, null);
  }

  /** Marks responses in background as running; answers those that were not ended elsewhere. */
  running(ids: readonly string[]): Promise<ReadonlySet<string>> {
    return extendRunning(this.#pool, ids, Date.now() + LEASE_MS);
  }

  /** Ends a response in background without an answer; false: it had ended. */
  end(
    owner: string,
    { id, conversationId: _added, ...content }: StoredResponse,
    response: JsonRecord,
  ): Promise<boolean> {
    return endResponse(
      this.#pool,
      {
        ...this.#sealed(id, { ...content, response }),
        response_id: id,
        owner,
        status: textOf(response["status"]),
      },
      null,
    );
  }

  /** Throws 404. One in background whose gateway was lost has failed. */
  async find(
    owner: string,
    id: string,
    param?: string,
  ): Promise<StoredResponse> {
    const row = isOwnId("resp", id)
      ? await findResponse(this.#pool, owner, id)
      : null;
    if (row === null) {
      throw notFound("response", id, param);
    }
    const found = this.#opened(row, param);
    if (!row.abandoned) {
      return found;
    }
    const response = failedResponse(
      found.response,
      "The gateway that ran this response stopped before it had ended. Send the request again.",
    );
    return (await this.end(owner, found, response))
      ? { ...found, response }
      : this.find(owner, id, param);
  }

  /** Throws 404. */
  async remove(owner: string, id: string): Promise<void> {
    const isGone =
      isOwnId("resp", id) && (await deleteResponse(this.#pool, owner, id));
    if (!isGone) {
      throw notFound("response", id);
    }
  }

  /** Everything that led to a response, and its output. Throws 404, and 400 where it cannot be continued. */
  async historyOf(
    owner: string,
    id: string,
    param = "previous_response_id",
  ): Promise<History> {
    const last = await this.find(owner, id, param);
    rejectUnfinished(last, param);
    const chain = await this.#chainOf(owner, id, param);
    return {
      items: chain.flatMap(storedItems).map(asInput),
      rootId: chain[0]?.id ?? id,
      session: last.session,
    };
  }

  /** The items that led to a response, without its output; the first one first. Throws 404. */
  async inputOf(owner: string, id: string): Promise<readonly JsonRecord[]> {
    const last = await this.find(owner, id);
    const before = await this.#chainOf(owner, id, "response_id");
    return [
      ...before
        .slice(0, -1)
        .flatMap(({ input, response }) => [
          ...input,
          ...recordsOf(response["output"]),
        ]),
      ...last.input,
    ];
  }

  /** Items of stored responses by their ids, as they are sent again; those that are not found are left out. */
  async itemsById(
    owner: string,
    ids: readonly string[],
  ): Promise<ReadonlyMap<string, JsonRecord>> {
    const rows = await responsesWithItems(
      this.#pool,
      owner,
      ids.map(storable),
      MAX_RESPONSES,
    );
    const found = new Map<string, JsonRecord>();
    for (const item of rows.flatMap((row) => storedItems(this.#opened(row)))) {
      const id = textOf(item["id"]);
      if (ids.includes(id) && !found.has(id)) {
        found.set(id, asInput(item));
      }
    }
    return found;
  }

  async #chainOf(
    owner: string,
    id: string,
    param: string,
  ): Promise<readonly StoredResponse[]> {
    const most = { responses: MAX_RESPONSES, bytes: MAX_BYTES };
    const rows = await chainOf(this.#pool, owner, id, most);
    const [first] = rows;
    if (first === undefined) {
      throw notFound("response", id, param);
    }
    const bytes = rows.reduce((sum, row) => sum + row.bytes, 0);
    if (bytes > MAX_BYTES) {
      throw tooLong(param);
    }
    if (first.previous_id !== null) {
      throw rows.length >= MAX_RESPONSES
        ? tooLong(param)
        : new CallError(
            "unknown_object",
            `${id} cannot be continued: ${first.previous_id}, which it continues, was deleted. Send the whole conversation in \`input\` instead.`,
            { param },
          );
    }
    return rows.map((row) => this.#opened(row, param));
  }

  #opened(row: ResponseRow, param?: string): StoredResponse {
    const content = openJson(row.sealed, row.response_id, this.#keys());
    if (content === null) {
      throw notFound("response", row.response_id, param);
    }
    return {
      id: row.response_id,
      conversationId: row.conversation_id,
      input: recordsOf(content["input"]),
      response: { ...recordOf(content["response"]), status: row.status },
      modelId: textOf(content["modelId"]) || null,
      session: sessionIn(content["session"]),
    };
  }

  #rowOf(kept: KeptResponse, content: Content) {
    return {
      ...this.#sealed(kept.id, content),
      response_id: kept.id,
      owner: kept.owner,
      previous_id: kept.previousId,
      root_id: kept.rootId,
      conversation_id: kept.conversationId,
      status: textOf(content.response["status"]),
    };
  }

  #sealed(id: string, { input, response, modelId, session }: Content) {
    const content: Content = { input, response, modelId, session };
    const output = recordsOf(response["output"]);
    return {
      ...sealJson(content, id, this.#keys()),
      itemIds: idsOf([...input, ...output]),
    };
  }

  #additionOf(
    { conversationId }: KeptResponse,
    { input, response, modelId }: Content,
  ): Addition | null {
    if (conversationId === null) {
      return null;
    }
    const output = withIds(recordsOf(response["output"]), conversationId);
    return this.conversations.addition(conversationId, [
      ...input,
      ...output.map((item) => markedReasoning(item, modelId)),
    ]);
  }

  #times(): { readonly createdAt: number; readonly expiresAt: number | null } {
    return {
      createdAt: Date.now(),
      expiresAt: expiresAt(this.#config().general.retention),
    };
  }

  #keys() {
    return this.#config().general;
  }
}

/** The input and output of a stored response; reasoning is marked with the deployment that it came from. */
function storedItems({
  input,
  response,
  modelId,
}: StoredResponse): readonly JsonRecord[] {
  const output = recordsOf(response["output"]);
  return [...input, ...output.map((item) => markedReasoning(item, modelId))];
}

function sessionIn(stored: unknown): Session | null {
  const { key, isNamed } = recordOf(stored);
  return typeof key === "string" ? { key, isNamed: isNamed === true } : null;
}

function rejectUnfinished(
  { id, response, conversationId }: StoredResponse,
  param: string,
): void {
  const status = textOf(response["status"]);
  if (conversationId !== null) {
    throw new CallError(
      "invalid_request",
      `${id} belongs to ${conversationId}: send \`conversation\` instead of \`${param}\`.`,
      { param },
    );
  }
  if (status === "completed" || status === "incomplete") {
    return;
  }
  throw new CallError(
    "invalid_request",
    ["queued", "in_progress"].includes(status)
      ? `${id} has not ended. Wait until its status is \`completed\`.`
      : `${id} has no answer to continue (${status}). Continue the response before it.`,
    { param },
  );
}

/** A response that ended without an answer. */
export function failedResponse(
  response: JsonRecord,
  message: string,
  code = "server_error",
): JsonRecord {
  return { ...response, status: "failed", error: { code, message } };
}
