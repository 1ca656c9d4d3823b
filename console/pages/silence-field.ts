import type { Field } from "./field.ts";

/** How long alerts are silenced; `tomorrow` is a time in words. */
export function silenceField(tomorrow: string): Field {
  return {
    kind: "choice",
    name: "for",
    label: "Duration",
    values: [
      ["1h", "1 hour"],
      ["8h", "8 hours"],
      ["tomorrow", `until ${tomorrow}`],
    ],
  };
}
