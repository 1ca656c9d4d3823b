import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { keyPage, KEY_STATES } from "../../../supervisor/gateway/rows.ts";
import { showPage } from "../../http/show-page.ts";
import {
  attempting,
  KEYS_PATH,
  type PayersConsole,
} from "../payers/console.ts";
import { askedOf, readList, type ListAsked } from "../payers/list.ts";
import { judgeKeys, KEY_SORTS, viewKeys, type KeyCounts } from "./keys-view.ts";

/** Counting all keys by state reads what each has spent: as long as this, many open tabs cost no more than one. */
const KEEP_MS = 5000;

/** GET /keys: all of them, searched, sorted and paged by the gateway. */
export function registerKeysPage(
  server: FastifyInstance,
  { api, timeZone, changes }: PayersConsole,
): void {
  let counted:
    | {
        readonly counts: KeyCounts;
        readonly until: number;
        readonly changes: number;
      }
    | undefined;

  async function countKeys(): Promise<KeyCounts> {
    const before = changes();
    if (counted?.changes === before && Date.now() < counted.until) {
      return counted.counts;
    }
    const [all, over_budget, blocked, expired] = await Promise.all([
      countOf(""),
      countOf("&state=over_budget"),
      countOf("&state=blocked"),
      countOf("&state=expired"),
    ]);
    const active = Math.max(0, all - over_budget - blocked - expired);
    counted = {
      counts: { active, over_budget, blocked, expired },
      // The first key is waited for.
      until: all > 0 ? Date.now() + KEEP_MS : 0,
      changes: before,
    };
    return counted.counts;
  }

  async function countOf(filter: string): Promise<number> {
    return z
      .object({ total_count: z.number() })
      .parse(await api.ask("GET", `/key/list?size=1${filter}`)).total_count;
  }

  async function readKeys(asked: ListAsked) {
    const query = askedOf(asked, "size");
    query.set("return_full_object", "true");
    return keyPage.parse(await api.ask("GET", `/key/list?${query.toString()}`));
  }

  server.get(KEYS_PATH, (request, reply) =>
    attempting(request, reply, KEYS_PATH, async () => {
      const asked = readList(request.query, KEY_SORTS, KEY_STATES);
      const [counts, page] = await Promise.all([countKeys(), readKeys(asked)]);
      const view = viewKeys({
        asked,
        counts,
        timeZone,
        now: Date.now(),

        keys: page.keys,
        total: page.total_count,
        pages: page.total_pages,
      });
      return showPage(
        request,
        reply,
        { ...judgeKeys(counts), current: KEYS_PATH, refreshes: true },
        "keys",
        view,
      );
    }),
  );
}
