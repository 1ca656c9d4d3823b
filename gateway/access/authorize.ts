import { CallError } from "../http/errors.ts";
import type { Caller } from "./callers.ts";
import { roleOf } from "./actor.ts";
import { mayUseRoute, ruleOf, whoMay, type RouteName } from "./policy.ts";
import { keyAllowsRoute } from "./key-routes.ts";

/** Calls and views belong to the caller, not to a team. */
const NO_PART = { adminOfATeam: false, memberOfATeam: false } as const;

/** Throws 403 naming the missing right when a caller's role, key type or allowed routes leave a route out. */
export function authorizeRoute(caller: Caller, route: RouteName): void {
  if (caller.kind === "master") {
    return;
  }
  const rule = ruleOf(route);
  const path = route.slice(route.indexOf(" ") + 1);
  if (!keyAllowsRoute(caller, rule, path)) {
    throw new CallError(
      "permission_denied",
      `This key may not use ${route}: its key_type or allowed_routes do not include it.`,
    );
  }
  const role = roleOf(caller);
  if (!mayUseRoute(rule, role, NO_PART)) {
    throw new CallError(
      "permission_denied",
      `The role ${role} may not use ${route}: it is for ${whoMay(rule)}.`,
    );
  }
}
