import type { RouteKind, Rule } from "./policy.ts";

/** Of no key: of a request for the user that is signed in at the console. It makes no calls. */
export const ACTING_KEY_TYPE = "acting";

/** Kinds of routes that a key of a type may use. */
const KEY_TYPES: ReadonlyMap<string, readonly RouteKind[]> = new Map([
  [ACTING_KEY_TYPE, ["management", "info", "any"]],
  ["llm_api", ["llm_api", "any"]],
  ["management", ["management", "info", "any"]],
  ["read_only", ["info", "any"]],
  ["default", ["llm_api", "management", "info", "any"]],
]);

/** Groups of routes in `allowed_routes`. */
const ROUTE_GROUPS: ReadonlyMap<string, readonly RouteKind[]> = new Map([
  ["llm_api_routes", ["llm_api", "any"]],
  ["management_routes", ["management", "info"]],
  ["info_routes", ["info"]],
]);

/** Whether an entry of `allowed_routes` can allow anything: a path, which may end in `*`, or a group of routes. */
export function isRouteOrGroup(entry: string): boolean {
  return entry.startsWith("/") || entry === "*" || ROUTE_GROUPS.has(entry);
}

/** Completes the sentence that starts with `allowed_routes`. */
export const FAULT_OF_ROUTES = `must have paths such as /v1/embeddings or /key/*, or ${[...ROUTE_GROUPS.keys()].join(", ")}`;

/** Whether a key's own `key_type` and `allowed_routes` let it use a route. `path` is the route's pattern, with or without `/v1`. */
export function keyAllowsRoute(
  key: { readonly keyType: string; readonly allowedRoutes: readonly string[] },
  { kind }: Rule,
  path: string,
): boolean {
  if (!(KEY_TYPES.get(key.keyType) ?? []).includes(kind)) {
    return false;
  }
  if (key.allowedRoutes.length === 0) {
    return true;
  }
  return key.allowedRoutes.some(
    (allowed) =>
      ROUTE_GROUPS.get(allowed)?.includes(kind) === true ||
      allowed === path ||
      allowed === `/v1${path}` ||
      `/v1${allowed}` === path ||
      (allowed.endsWith("*") && path.startsWith(allowed.slice(0, -1))),
  );
}
