import { recordOf, type JsonRecord } from "../../core/json.ts";

/** The image of a part of a message: some clients, such as Mistral's, write its address alone, as OpenAI's first API did. */
export function imageOf({ image_url: image }: JsonRecord): JsonRecord {
  return typeof image === "string" ? { url: image } : recordOf(image);
}
