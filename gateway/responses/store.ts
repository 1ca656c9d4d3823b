import type { GatewayConfig } from "../config/types.ts";
import type { Addition } from "../database/conversations.ts";
import { deleteOwned } from "../database/owned.ts";
import type { Pool } from "../database/pool.ts";
import {
  chainOf,
  endResponse,
  extendRunning,
  findResponse,
  insertResponse,
  responsesOf,
  responsesWithItems,
  type ResponseRow,
} from "../database/responses.ts";
import { CallError } from "../http/errors.ts";
import {
  recordOf,
  recordsOf,
  textOf,
  type JsonRecord,
} from "../../core/json.ts";
import { markedReasoning } from "../providers/reasoning-origin.ts";
import { Conversations } from "./conversations.ts";
import { asInput, idsOf, storable, withIds } from "./items.ts";
import {
  isOwnId,
  type History,
  type ResponseContext,
} from "./response-context.ts";
import { expiresAt, MAX_BYTES, MAX_RESPONSES, tooLong } from "./limits.ts";
import { notFound } from "./not-found.ts";
import { openJson, sealJson } from "./sealed-text.ts";
import {
  failedResponse,
  rejectUnfinished,
  sessionIn,
  storedItems,
  type Content,
  type StoredResponse,
} from "./stored-response.ts";

/** A gateway extends the lease of its responses in background far more often. */
const LEASE_MS = 15_000;

/** A response with those that it continues, the first one first. */
interface Chain {
  readonly before: readonly StoredResponse[];
  readonly last: StoredResponse;
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
  async save(context: ResponseContext, content: Content): Promise<void> {
    const row = this.#rowOf(context, content);
    const addition = this.#additionOf(context, content);
    if (context.background === null) {
      const times = { ...this.#times(), leaseMs: null };
      await insertResponse(this.#pool, { ...row, ...times }, addition);
    } else {
      await endResponse(this.#pool, row, addition);
    }
  }

  /** Stores a response that will be answered in background. */
  async queue(context: ResponseContext, content: Content): Promise<void> {
    const row = this.#rowOf(context, content);
    const times = { ...this.#times(), leaseMs: LEASE_MS };
    await insertResponse(this.#pool, { ...row, ...times }, null);
  }

  /** Marks responses in background as running; answers those that were not ended elsewhere. */
  running(ids: readonly string[]): Promise<ReadonlySet<string>> {
    return extendRunning(this.#pool, ids, LEASE_MS);
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
      isOwnId("resp", id) &&
      (await deleteOwned(this.#pool, "responses", owner, id));
    if (!isGone) {
      throw notFound("response", id);
    }
  }

  /** Everything that led to a response, and its output. Throws 404, and 400 where it cannot be continued. */
  async historyOf(owner: string, id: string): Promise<History> {
    const param = "previous_response_id";
    const { before, last } = await this.#chainOf(owner, id, param);
    rejectUnfinished(last, param);
    return {
      items: [...before, last].flatMap(storedItems).map(asInput),
      rootId: before[0]?.id ?? id,
      session: last.session,
    };
  }

  /** The items that led to a response, without its output; the first one first. Throws 404. */
  async inputOf(owner: string, id: string): Promise<readonly JsonRecord[]> {
    const { before, last } = await this.#chainOf(owner, id, "response_id");
    return [
      ...before.flatMap(({ input, response }) => [
        ...input,
        ...recordsOf(response["output"]),
      ]),
      ...last.input,
    ];
  }

  /** Items of the stored responses that have any of these ids, by their ids, as they are sent again. */
  async itemsById(
    owner: string,
    ids: readonly string[],
  ): Promise<ReadonlyMap<string, JsonRecord>> {
    const missing = new Set(ids.map(storable));
    const holders = await responsesWithItems(
      this.#pool,
      owner,
      [...missing],
      MAX_RESPONSES,
    );
    // The newest one that has it, of each: a conversation whose client repeats it is in many.
    const needed = holders.filter(
      ({ has }) => has.filter((id) => missing.delete(id)).length > 0,
    );
    const rows = await responsesOf(
      this.#pool,
      needed.map(({ id }) => id),
    );
    const items = rows.flatMap((row) => storedItems(this.#opened(row)));
    return new Map(items.map((item) => [textOf(item["id"]), asInput(item)]));
  }

  async #chainOf(owner: string, id: string, param: string): Promise<Chain> {
    const most = { responses: MAX_RESPONSES, bytes: MAX_BYTES };
    const rows = isOwnId("resp", id)
      ? await chainOf(this.#pool, owner, id, most)
      : [];
    const [first] = rows;
    const last = rows.at(-1);
    if (first === undefined || last === undefined) {
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
    return {
      before: rows.slice(0, -1).map((row) => this.#opened(row, param)),
      last: this.#opened(last, param),
    };
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

  #rowOf(context: ResponseContext, content: Content) {
    return {
      ...this.#sealed(context.id, content),
      response_id: context.id,
      owner: context.owner,
      previous_id: context.continuesStored ? context.previousId : null,
      root_id: context.rootId,
      conversation_id: context.conversationId,
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
    { conversationId }: ResponseContext,
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
