import { z } from "zod";
import type { Route } from "../../http/route.ts";
import { adminRoute, type Admin } from "../admin-route.ts";
import { ownRestrictions } from "./call-filters.ts";
import {
  callPageAnswer,
  callPaging,
  findCalls,
  readFound,
  type CallPaging,
} from "./call-paging.ts";

const answer = z.object(callPageAnswer);

/** Calls of one key. */
export type OwnCalls = z.output<typeof answer>;

/** GET /me/calls */
const calls = adminRoute(
  "GET /me/calls",
  {
    summary:
      "List the last calls of the caller's key, newest first, without prompts and answers. Rejected calls are in GET /me/usage.",
    input: z.object(callPaging),
    answer,
  },
  ownCallsOf,
);

/** The last calls of the caller's key, or with the master key those made with it. */
export async function ownCallsOf(
  admin: Admin,
  paging: CallPaging,
): Promise<OwnCalls> {
  const restrictions = await ownRestrictions(admin);
  const { found, places } = await findCalls(admin, restrictions, paging);
  const data = (await readFound(admin, found)) as OwnCalls["data"];
  return { data, ...places };
}

export const OWN_CALLS: readonly Route[] = [calls];
