import type { FastifyInstance } from "fastify";
import { keyPage, userInfo } from "../../../supervisor/gateway/rows.ts";
import { callPage, refusals } from "../../../supervisor/gateway/usage.ts";
import { showPage } from "../../http/show-page.ts";
import { OWN_PAGE_PATH } from "../frame.ts";
import { withQuery } from "../nouns/noun-address.ts";
import { gatewayHandlers, type NounContext } from "../nouns/noun-context.ts";
import { viewMe, type Me } from "./me-view.ts";

/** Of each list; the gateway's largest page. */
const MAX_KEYS = 100;
const READ_CALLS = 8;
const READ_REFUSALS = 100;
/** The ledger is asked for a period: before the first call, and after the last. */
const EVER = { start_date: "2000-01-01", end_date: "2100-01-01" } as const;

/** GET /me: spend, keys, calls and rejections of the person. */
export function registerMePage(
  server: FastifyInstance,
  context: NounContext,
  person: () => string | undefined,
): void {
  const handle = gatewayHandlers(context, {
    title: "Your keys are unavailable.",
    current: OWN_PAGE_PATH,
  });
  server.get(
    OWN_PAGE_PATH,
    handle("/", async (request, reply) => {
      const { title, look, ...view } = viewMe(
        await readMe(context, person() ?? ""),
      );
      return showPage(
        request,
        reply,
        { title, look, current: OWN_PAGE_PATH, refreshes: true },
        "me",
        view,
      );
    }),
  );
}

async function readMe(
  { api, timeZone, address }: NounContext,
  userId: string,
): Promise<Me> {
  const [user, keys, calls, rejected] = await Promise.all([
    api.ask("GET", withQuery("/user/info", { user_id: userId })),
    api.ask(
      "GET",
      withQuery("/key/list", {
        user_id: userId,
        return_full_object: "true",
        sort_by: "created_at",
        size: String(MAX_KEYS),
      }),
    ),
    api.ask(
      "GET",
      withQuery("/spend/logs/v2", {
        user_id: userId,
        page_size: String(READ_CALLS),
        count_up_to: "0",
        ...EVER,
      }),
    ),
    api.ask(
      "GET",
      withQuery("/refusals", { page_size: String(READ_REFUSALS) }),
    ),
  ]);
  const { user_info: info, teams } = userInfo.parse(user);
  return {
    user: info,
    teams,
    keys: keyPage.parse(keys),
    calls: callPage.parse(calls).data,
    refusals: refusals.parse(rejected),
    timeZone,
    address,
    now: Date.now(),
  };
}
