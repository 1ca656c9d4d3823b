import { z } from "zod";
import { isDay } from "../../../core/words.ts";
import { withQuery } from "../nouns/noun-address.ts";

export const AUDIT_PATH = "/audit";

export const SOURCES = ["gateway", "console"] as const;

const text = z.string().trim().max(300).catch("");
const day = z.string().refine(isDay).catch("");

const querySchema = z.object({
  /** gateway: its audit log; console: what people did to services, checks, alarms, jobs and vaults. */
  source: z.enum(SOURCES).catch("gateway"),
  author: text,
  action: text,
  type: text,
  object: text,
  from: day,
  until: day,
  /** Continues after this entry. */
  before: text,
});

/** Which entries the page lists, as its address has it; empty texts select all. Days in the operator's time zone. */
export type AuditChoice = z.output<typeof querySchema>;

/** What is invalid counts as missing. */
export function readAuditChoice(query: unknown): AuditChoice {
  return querySchema.parse(query);
}

export function auditHref(
  choice: Partial<AuditChoice>,
  path: string = AUDIT_PATH,
): string {
  const { source, ...rest } = choice;
  const named = source === "console" ? { source } : {};
  return withQuery(
    path,
    Object.fromEntries(
      Object.entries({ ...named, ...rest }).filter(([, value]) => value !== ""),
    ),
  );
}
