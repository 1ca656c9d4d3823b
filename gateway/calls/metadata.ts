import { z } from "zod";
import { invalidParam } from "../http/errors.ts";
import {
  isRecord,
  parseRecord,
  recordOf,
  type JsonRecord,
} from "../../core/json.ts";
import type { CallBody } from "./body.ts";

/** Fields of every body with facts about the call. LiteLLM's clients may send an object as its JSON text. */
export const METADATA_FIELDS = {
  metadata: z
    .union([z.looseObject({}), z.string()], { error: "must be an object" })
    .nullish(),
};

/** The body with `metadata` and `litellm_metadata` as objects; throws 400 for a text that is none. */
export function withMetadata(body: CallBody): CallBody {
  let parsed = body;
  for (const field of ["metadata", "litellm_metadata"]) {
    const value = body[field];
    if (value === undefined || value === null || isRecord(value)) {
      continue;
    }
    const read = typeof value === "string" ? parseRecord(value) : null;
    if (read === null) {
      throw invalidParam(field, "must be an object, or its JSON as text.");
    }
    parsed = { ...parsed, model: body.model, [field]: read };
  }
  return parsed;
}

/** What a caller says about a call; `litellm_metadata` where `metadata` belongs to the provider. */
export function metadataOf(
  body: CallBody,
  field: "metadata" | "litellm_metadata" = "metadata",
): JsonRecord {
  return recordOf(body[field]);
}
