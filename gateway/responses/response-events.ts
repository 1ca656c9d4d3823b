import type { GatewayConfig } from "../config/types.ts";
import type { Pool } from "../database/pool.ts";
import {
  appendEvents,
  eventsAfter,
  lastEvent,
} from "../database/response-events.ts";
import { recordsOf, numberOf, type JsonRecord } from "../../core/json.ts";
import { isOwnId } from "./response-context.ts";
import { notFound } from "./not-found.ts";
import { openJson, sealJson } from "./sealed-text.ts";

/** Rows that are read at once. */
const PAGE = 100;

/** Events after a number, and whether more will come. */
interface Followed {
  readonly events: readonly JsonRecord[];
  readonly isRunning: boolean;
}

/** The events of responses in background in Postgres, encrypted: the same for every gateway. Throws `DatabaseUnavailable`. */
export class ResponseEvents {
  readonly #pool: Pool;
  readonly #config: () => GatewayConfig;

  constructor(pool: Pool, config: () => GatewayConfig) {
    this.#pool = pool;
    this.#config = config;
  }

  /** Adds events to a response that runs; the last of them has this number. */
  async append(
    id: string,
    lastNumber: number,
    events: readonly JsonRecord[],
  ): Promise<void> {
    const { sealed } = sealJson({ events }, id, this.#config().general);
    await appendEvents(this.#pool, id, { last_number: lastNumber, sealed });
  }

  /** Throws 404. */
  async after(owner: string, id: string, after: number): Promise<Followed> {
    const found = isOwnId("resp", id)
      ? await eventsAfter(this.#pool, owner, id, after, PAGE)
      : null;
    if (found === null) {
      throw notFound("response", id);
    }
    const events = found.events
      .flatMap(({ sealed }) => {
        const opened = openJson(sealed, id, this.#config().general);
        return recordsOf(opened?.["events"]);
      })
      .filter((event) => (numberOf(event["sequence_number"]) ?? 0) > after);
    return {
      events,
      isRunning: found.isRunning || found.events.length === PAGE,
    };
  }

  /** The number of the last one; null: the response was not created with `stream`. */
  last(id: string): Promise<number | null> {
    return lastEvent(this.#pool, id);
  }
}
