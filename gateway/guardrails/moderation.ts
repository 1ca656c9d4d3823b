import type { Checking } from "./guard.ts";

/** Asks a moderation model of the gateway; it is called, limited and billed like any other model. */
export function moderationChecking(model: string): Checking {
  return {
    kind: "remote",
    async check(texts, subject) {
      const categories = await subject.moderate(model, texts);
      const reason = categories.join(", ");
      return categories.length === 0
        ? { kind: "passed" }
        : { kind: "blocked", reason, logged: reason };
    },
  };
}
