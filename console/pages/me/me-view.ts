import type { z } from "zod";
import { grouped, moment, readable } from "../../../core/words.ts";
import { teamName, userName } from "../../../supervisor/gateway/owners.ts";
import type { keyPage, userInfo } from "../../../supervisor/gateway/rows.ts";
import type { Call, Refusals } from "../../../supervisor/gateway/usage.ts";
import { viewCall } from "../calls/call-rows.ts";
import { OWN_PAGE_PATH } from "../frame.ts";
import { spendHeading, stateOfBudget, viewBudget } from "../nouns/budget.ts";
import { keyTitle, ownedKeyColumns } from "../nouns/key-list.ts";
import { limitFigures } from "../nouns/limit-fields.ts";
import { plainHeads } from "../nouns/list-view.ts";
import { cellsOf } from "../nouns/noun-columns.ts";

/** The person's user, keys, latest calls, and the rejections of the last 24 hours of all keys within reach. */
export interface Me {
  readonly user: z.infer<typeof userInfo>["user_info"];
  readonly teams: z.infer<typeof userInfo>["teams"];
  readonly keys: z.infer<typeof keyPage>;
  readonly calls: readonly Call[];
  readonly refusals: Refusals;
  /** Where key holders reach the gateway. */
  readonly address: string;
  /** IANA name. */
  readonly timeZone: string;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** What templates/me.eta shows. */
export function viewMe(me: Me) {
  const { user, teams, keys, calls, address, timeZone, now } = me;
  const budget = viewBudget(user, timeZone, now);
  const columns = ownedKeyColumns(OWN_PAGE_PATH);
  return {
    title: spendHeading(userName(user), budget, user),
    look: stateOfBudget(user).look,
    address: `${address}/v1`,
    budget,
    limits: limitFigures(user),
    teams: teams.map(teamName),
    // A viewer of own keys creates none.
    create:
      user.user_role === "internal_user_viewer" ? null : `${OWN_PAGE_PATH}/new`,
    columns: plainHeads(columns),
    rows: cellsOf(columns, keys.keys, { timeZone, now }),
    more: keys.total_count - keys.keys.length,
    calls: calls.map((call) => viewCall(call, timeZone, now)),
    refusals: viewRefusals(me),
  };
}

/** A row for each own key and reason, the most frequent first. */
function viewRefusals({ keys: { keys }, refusals, timeZone }: Me) {
  const own = new Map(keys.map((key) => [key.token, key]));
  return refusals.counts.flatMap(({ api_key: token, type, count, last_at }) => {
    const key = own.get(String(token));
    return key === undefined
      ? []
      : [
          {
            key: keyTitle(key),
            href: `${OWN_PAGE_PATH}/${key.token}`,
            why: readable(type.replaceAll("_", " ")),
            count: grouped(count),
            at: moment(Date.parse(last_at), timeZone),
          },
        ];
  });
}
