import { AsyncLocalStorage } from "node:async_hooks";
import { clock } from "../../../core/words.ts";
import {
  Refusal,
  Unanswered,
  type AdminApi,
} from "../../../supervisor/gateway/admin-api.ts";
import type { Notice } from "../frame.ts";

interface KnownAnswersOptions {
  readonly api: AdminApi;
  /** The same with a short timeout: used once the gateway has not answered. */
  readonly hasty: AdminApi;
  readonly now: () => number;
  /** IANA name. */
  readonly timeZone: string;
  /** Called when the gateway does not answer. */
  readonly onSilent: () => void;
  /** Path of the gateway's page; null if it has none. */
  readonly page: () => string | null;
}

interface Known {
  readonly at: number;
  readonly answer: unknown;
}

/** What a page shows instead of asking. */
interface Recollection {
  readonly outage: Outage;
  /** When the oldest answer used so far arrived. */
  oldest: number;
  notice: Notice | null;
}

/** Lists of 25 rows, one for each address that was opened lately. */
const MAX_KNOWN = 50;

/** Stored prompts: the gateway records each view, so each one asks it. The audit log: its answers are too large. */
const SHOWN_ONCE = /^\/(?:spend\/calls\/[^/]+\/prompt|audit\?.*)$/;

const recollections = new AsyncLocalStorage<Recollection>();

/** No gateway answers, or it cannot, without its database. */
type Outage = Unanswered | Refusal;

export function isOutage(error: unknown): error is Outage {
  return (
    error instanceof Unanswered ||
    (error instanceof Refusal && error.status === 503)
  );
}

/** Runs `act` with the gateway's latest answers instead of new ones; an {@link Unanswered} if one of them is missing. */
export function recall<Result>(
  outage: Outage,
  act: (notice: () => Notice | null) => Promise<Result>,
): Promise<Result> {
  const recollection: Recollection = { outage, oldest: Infinity, notice: null };
  return recollections.run(recollection, () => act(() => recollection.notice));
}

/** Remembers the gateway's answers for pages that are opened while it does not answer. */
export function rememberAnswers(options: KnownAnswersOptions): AdminApi {
  const { api, hasty, now, onSilent, page } = options;
  const known = new Map<string, Known>();
  let isSilent = false;
  return {
    ...api,
    ask: async (method, path, body) => {
      const recollection = recollections.getStore();
      if (recollection !== undefined && method === "GET") {
        return recalled(recollection, known.get(path), options);
      }
      try {
        const asked = isSilent && method === "GET" ? hasty : api;
        const answer = await asked.ask(method, path, body);
        isSilent = false;
        if (method === "GET" && !SHOWN_ONCE.test(path)) {
          known.delete(path);
          known.set(path, { at: now(), answer });
          dropOldest(known);
        }
        return answer;
      } catch (error) {
        if (error instanceof Unanswered) {
          isSilent = true;
          error.page = page();
          onSilent();
        } else {
          isSilent = false;
        }
        throw error;
      }
    },
  };
}

function recalled(
  recollection: Recollection,
  known: Known | undefined,
  { api, timeZone, page }: KnownAnswersOptions,
): unknown {
  if (known === undefined) {
    throw new Unanswered(api.address, "this page was not opened before");
  }
  recollection.oldest = Math.min(recollection.oldest, known.at);
  const { outage, oldest } = recollection;
  const isSilent = outage instanceof Unanswered;
  recollection.notice = {
    text: `${isSilent ? "The gateway does not answer." : outage.sentences.join(" ")} This page shows its data of ${clock(oldest, timeZone)}; changes are not possible.`,
    href: isSilent ? page() : "/",
    link: isSilent ? "Open gateway" : "Open status",
  };
  return known.answer;
}

function dropOldest(known: Map<string, Known>): void {
  const [oldest] = known.keys();
  if (known.size > MAX_KNOWN && oldest !== undefined) {
    known.delete(oldest);
  }
}
