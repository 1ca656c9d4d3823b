import { withoutTrailingSlashes } from "../../core/trailing-slashes.ts";
import type { ClientParam } from "../config/types.ts";
import { secret } from "../config/secret.ts";
import { CallError, invalidParam } from "../http/errors.ts";
import { textOf } from "../../core/json.ts";
import { matchesAddress } from "../routing/caller-pattern.ts";
import type { ModelGroup, PricedDeployment } from "../routing/catalog.ts";
import type { CallBody } from "./body.ts";

/** A caller's own account at a provider, which it may use where a deployment permits it. */
interface ClientAccess {
  readonly apiKey: string | null;
  readonly apiBase: string | null;
}

/** Reads `api_key` and `api_base` (or `base_url`) of a body; null: the gateway's own access is used. */
export function readClientAccess(body: CallBody): ClientAccess | null {
  const apiKey = textIn(body, "api_key");
  const apiBase = textIn(body, "api_base") ?? textIn(body, "base_url");
  if (apiKey === null && apiBase === null) {
    return null;
  }
  return { apiKey, apiBase: apiBase === null ? null : plainAddress(apiBase) };
}

/** An address as calls are sent to it: in another spelling, the host that a pattern sees may not be the one that is called. */
function plainAddress(text: string): string {
  const url = URL.parse(text);
  if (
    url === null ||
    !/^https?:$/.test(url.protocol) ||
    url.username + url.password + url.search + url.hash !== ""
  ) {
    throw invalidParam(
      "api_base",
      "must be an http:// or https:// address without user, password and query.",
    );
  }
  return withoutTrailingSlashes(url.origin + url.pathname);
}

/**
 * The group with those of its deployments that permit a caller's own access, which replaces theirs: the gateway's keys and
 * headers never go to an address or with a key of a caller. Throws 403 if none permits it.
 */
export function withClientAccess(
  group: ModelGroup,
  access: ClientAccess,
): ModelGroup {
  const { apiKey, apiBase } = access;
  const param = apiBase === null ? "api_key" : "api_base";
  const deployments = group.deployments.filter((deployment) =>
    permits(deployment, access),
  );
  if (deployments.length === 0) {
    throw new CallError(
      "permission_denied",
      `\`${param}\` is not permitted for ${group.alias}: omit it, or ask the gateway's administrator to permit it with \`configurable_clientside_auth_params\`.`,
      { param },
    );
  }
  if (apiKey === null) {
    throw new CallError(
      "invalid_request",
      "`api_base` requires an `api_key`: the gateway's own key is not sent to other addresses.",
      { param: "api_key" },
    );
  }
  return {
    ...group,
    deployments: deployments.map((deployment) => ({
      ...deployment,
      apiBase: apiBase ?? deployment.apiBase,
      // Only a pattern says which servers of a private network a caller may name.
      publicOnly:
        deployment.publicOnly ||
        (apiBase !== null && !isInPattern(deployment, apiBase)),
      apiKey: secret(apiKey),
      headers: {},
    })),
  };
}

function permits(
  { clientParams }: PricedDeployment,
  { apiKey, apiBase }: ClientAccess,
): boolean {
  const mayUseKey = clientParams.some(({ name }) => name === "api_key");
  return (
    (apiKey === null || mayUseKey || apiBase !== null) &&
    (apiBase === null ||
      clientParams.some((param) => permitsAddress(param, apiBase)))
  );
}

function permitsAddress(param: ClientParam, apiBase: string): boolean {
  return (
    param.name === "api_base" &&
    (param.pattern === null || matchesAddress(param.pattern, apiBase))
  );
}

function isInPattern({ clientParams }: PricedDeployment, apiBase: string) {
  return clientParams.some(
    (param) => param.pattern !== null && permitsAddress(param, apiBase),
  );
}

function textIn(body: CallBody, field: string): string | null {
  const value = body[field];
  if (value === undefined || value === null || value === "") {
    return null;
  }
  // Printable ASCII: both become part of a request.
  if (/^[!-~]+$/.test(textOf(value))) {
    return textOf(value);
  }
  throw invalidParam(field, "must be text without spaces.");
}
