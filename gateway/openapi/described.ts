import type { z } from "zod";

/** What the document says of a route beside what it takes. */
export interface Described {
  readonly summary: string;
  readonly answer: z.ZodType;
}

export function described(summary: string, answer: z.ZodType): Described {
  return { summary, answer };
}
