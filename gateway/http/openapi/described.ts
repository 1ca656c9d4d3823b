import type { z } from "zod";

/** What the document says of a route beside what it takes. */
export interface Described {
  readonly summary: string;
  readonly answer: z.ZodType;
  readonly contentType: string;
}

export function described(
  summary: string,
  answer: z.ZodType,
  contentType = "application/json",
): Described {
  return { summary, answer, contentType };
}
