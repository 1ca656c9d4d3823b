import { z } from "zod";

const text = z.string();

/** Values as answers show them. */
export const out = {
  text,
  texts: z.array(text),
  count: z.int(),
  dollars: z.number(),
  moment: text.meta({ format: "date-time" }),
  day: text.meta({ format: "date" }),
  anything: z.record(text, z.unknown()),
} as const;
