import { nearest } from "../../core/nearest.ts";
import type { Caller } from "../access/callers.ts";
import type { GuardrailConfig } from "../config/types.ts";
import type { Gateway } from "../gateway.ts";
import { CallError, invalidParam } from "../http/errors.ts";
import { isRecord, recordOf, type JsonRecord } from "../../core/json.ts";
import type { ModelGroup } from "../routing/catalog.ts";
import { CallGuards } from "./call-guards.ts";
import { openGuard } from "./open-guard.ts";

/**
 * The guardrails of a call: those that check every call, those of its key, team and alias, and those that it requests itself;
 * null: none. Throws 400 naming a requested one that does not exist, 503 for a required one.
 */
export function guardsOf(
  gateway: Pick<Gateway, "config" | "log" | "metrics">,
  caller: Caller,
  group: ModelGroup,
  body: JsonRecord,
): CallGuards | null {
  const { guardrails } = gateway.config;
  const requested = requestedGuards(guardrails, body);
  const required = requiredGuards(caller, group);
  if (
    guardrails.length === 0 &&
    requested.length === 0 &&
    required.length === 0
  ) {
    return null;
  }
  const missing = required.find((name) => !isKnown(guardrails, name));
  if (missing !== undefined) {
    throw new CallError(
      "guardrail_unavailable",
      `The guardrail ${missing}, which this key, its team or this model requires, is not configured. Ask the operator of this gateway to add it to \`guardrails\`.`,
    );
  }
  const names = new Set([...required, ...requested]);
  const all = guardrails.filter(
    ({ name, defaultOn }) => defaultOn || names.has(name),
  );
  return all.length === 0 ? null : new CallGuards(all.map(openGuard), gateway);
}

/** Whether the guardrails that a fallback's alias requires are among those of the call. */
export function coversGuards(
  guards: CallGuards | null,
  { deployments }: ModelGroup,
): boolean {
  return deployments.every(({ guardrails }) =>
    guardrails.every(
      (name) => guards?.all.some(({ config }) => config.name === name) ?? false,
    ),
  );
}

const NONE: readonly string[] = [];

function requiredGuards(
  caller: Caller,
  { deployments }: ModelGroup,
): readonly string[] {
  const ofKey = caller.kind === "key" ? caller.guardrails : NONE;
  const ofTeam = (caller.kind === "key" && caller.team?.guardrails) || NONE;
  const ofNone =
    ofKey.length + ofTeam.length === 0 &&
    deployments.every(({ guardrails }) => guardrails.length === 0);
  return ofNone
    ? NONE
    : [
        ...ofKey,
        ...ofTeam,
        ...deployments.flatMap(({ guardrails }) => guardrails),
      ];
}

function isKnown(known: readonly GuardrailConfig[], name: string): boolean {
  return known.some((one) => one.name === name);
}

function requestedGuards(
  known: readonly GuardrailConfig[],
  body: JsonRecord,
): readonly string[] {
  const fields = [
    ["guardrails", body["guardrails"]],
    ["metadata.guardrails", recordOf(body["metadata"])["guardrails"]],
    [
      "litellm_metadata.guardrails",
      recordOf(body["litellm_metadata"])["guardrails"],
    ],
  ] as const;
  if (fields.every(([, value]) => value == null)) {
    return NONE;
  }
  return fields.flatMap(([field, value]) =>
    namesIn(field, value).map((name) => {
      if (!isKnown(known, name)) {
        throw unknownGuardrail(known, name, field);
      }
      return name;
    }),
  );
}

/** Names of a list, or the fields of an object; a guardrail cannot be switched off, and its parameters are the operator's. */
function namesIn(field: string, value: unknown): readonly string[] {
  if (value == null || value === false || value === "") {
    return NONE;
  }
  const listed: readonly unknown[] = Array.isArray(value) ? value : [value];
  const entries = listed.flatMap(
    (entry): readonly (readonly [unknown, unknown])[] =>
      isRecord(entry) ? Object.entries(entry) : [[entry, true]],
  );
  return entries.map(([name, setting]) => {
    if (setting === false) {
      throw new CallError(
        "permission_denied",
        `\`${field}\` cannot switch the guardrail ${String(name)} off: omit it.`,
        { param: field },
      );
    }
    const isSet = isRecord(setting) && Object.keys(setting).length > 0;
    if (typeof name !== "string" || isSet) {
      throw invalidParam(
        field,
        "must be a list of names of guardrails; their parameters are set in the gateway's configuration.",
      );
    }
    return name;
  });
}

/** The error that names an unknown guardrail and what may have been meant. */
export function unknownGuardrail(
  known: readonly GuardrailConfig[],
  name: string,
  field: string,
): CallError {
  const names = known.map((one) => one.name);
  const near = nearest(name, names);
  const existing =
    near !== undefined
      ? `Did you mean ${near}?`
      : names.length === 0
        ? "This gateway runs no guardrails, and the call would be unguarded: omit it."
        : `Guardrails: ${names.join(", ")}.`;
  return invalidParam(
    field,
    `names an unknown guardrail, ${name}. ${existing}`,
  );
}
