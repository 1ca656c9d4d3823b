import type { z } from "zod";
import { authorizeNamedModels } from "../access/named-models.ts";
import type { Caller } from "../access/callers.ts";
import { authorizeModel, isLimitedAs } from "../access/models.ts";
import type { Gateway } from "../gateway.ts";
import { CallError, invalidParam } from "../http/errors.ts";
import type { Measure } from "../pricing/measure.ts";
import type { ModelGroup } from "../routing/catalog.ts";
import type { CallBody } from "./body.ts";
import { providerBody, rejectUnsupportedFields } from "./gateway-fields.ts";
import { withMetadata } from "./metadata.ts";
import type { Fallback } from "./options.ts";
import { validateBody } from "./validate.ts";

/** What is sent to a fallback instead of the call's own body. */
export interface Replacement {
  readonly body: CallBody;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly measure: Measure | null;
}

/** What of a kind of call decides about its fallbacks. */
interface Kind {
  readonly callType: string;
  readonly schema: z.ZodType<CallBody>;
}

/** A call that names fallbacks. */
interface NamingCall {
  readonly group: Pick<ModelGroup, "alias">;
  readonly kind: Kind;
  readonly body: CallBody;
}

export interface RequestedFallbacks {
  /** Aliases in order; null: the configured ones. */
  readonly names: readonly string[] | null;
  /** By alias, of the fallbacks with fields of their own. */
  readonly replacements: ReadonlyMap<string, Replacement>;
}

/**
 * The fallbacks that a call requests, each authorised as a call of its own. Throws 403 naming one that the caller may not use,
 * and 400 naming one that does not exist; a pending one is skipped. `size` counts the tokens of a body for a group.
 */
export function authorizeFallbacks(
  gateway: Pick<Gateway, "catalog">,
  caller: Caller,
  { group: own, kind, body }: NamingCall,
  requested: readonly Fallback[] | null,
  size: (body: CallBody, group: ModelGroup) => Replacement,
): RequestedFallbacks {
  const names: string[] = [];
  const replacements = new Map<string, Replacement>();
  for (const { alias, fields } of requested ?? []) {
    const group = authorizeFallback(gateway, caller, alias);
    if (group === null) {
      continue;
    }
    if (group.alias !== own.alias && isLimitedAs(caller, group.alias)) {
      throw limitedFallback(alias);
    }
    names.push(group.alias);
    if (fields !== null) {
      const replaced = replacedBody(kind, body, fields);
      authorizeNamedModels(gateway, caller, replaced);
      replacements.set(group.alias, size(replaced, group));
    }
  }
  return { names: requested === null ? null : names, replacements };
}

/** A call counts towards the limits of the alias that was called, whichever answers. */
function limitedFallback(alias: string): CallError {
  return new CallError(
    "permission_denied",
    `Fallback ${alias}: this key has a budget or limits of its own for this model, which count only calls that name it in \`model\`. Send another call instead.`,
    { param: "fallbacks" },
  );
}

function authorizeFallback(
  gateway: Pick<Gateway, "catalog">,
  caller: Caller,
  name: string,
): ModelGroup | null {
  try {
    return authorizeModel(gateway, caller, name);
  } catch (error) {
    if (!(error instanceof CallError)) {
      throw error;
    }
    if (error.kind === "model_pending") {
      return null;
    }
    throw new CallError(error.kind, `Fallback ${name}: ${error.message}`, {
      ...error.details,
      param: "fallbacks",
    });
  }
}

/** The fields of one call only: access, and what applies to all of its attempts. */
const NOT_OF_A_FALLBACK = ["api_key", "api_base", "base_url", "stream"];

function replacedBody(
  kind: Kind,
  body: CallBody,
  fields: Fallback["fields"],
): CallBody {
  const wrong =
    kind.callType === "aembedding"
      ? Object.keys(fields ?? {})[0]
      : NOT_OF_A_FALLBACK.find((name) => fields?.[name] !== undefined);
  if (wrong !== undefined) {
    throw invalidParam(
      "fallbacks",
      `must not set \`${wrong}\`: omit it there.`,
    );
  }
  const merged = withMetadata(
    validateBody(kind.schema, { ...body, ...fields }),
  );
  rejectUnsupportedFields(merged, kind.callType);
  return providerBody(merged);
}
