import { equal, type ResourceDouble } from "./protocol.ts";

/**
 * The diff of a resource type by the recorded effect of a change of each property. Throws for a change without a record.
 * `computed` are properties that the plugin adds to the state.
 */
export function recordedDiff(
  type: string,
  rules: Readonly<Record<string, "replace" | "update">>,
  computed: readonly string[] = [],
): ResourceDouble["diff"] {
  return (state, inputs) => {
    const replaces: string[] = [];
    const updates: string[] = [];
    for (const property of Object.keys({ ...state, ...inputs })) {
      if (computed.includes(property)) {
        continue;
      }
      if (equal(state[property] ?? null, inputs[property] ?? null)) {
        continue;
      }
      const rule = rules[property];
      if (rule === undefined) {
        throw new Error(
          `the doubles know no record of what a change of a ${type}'s ${property} does`,
        );
      }
      (rule === "replace" ? replaces : updates).push(property);
    }
    return { replaces, updates };
  };
}
