import { unknownName } from "../../core/config/problem.ts";
import { problemAt, type Reading } from "../../core/config/reading.ts";

/** Callbacks that have an effect here; LiteLLM's other names are reported with a warning. */
const CALLBACKS = ["prometheus"] as const;

export type Callback = (typeof CALLBACKS)[number];

/** Which calls each of LiteLLM's lists is about. */
const LISTS = {
  callbacks: ["success", "failure"],
  success_callback: ["success"],
  failure_callback: ["failure"],
} as const;

/** Callbacks by the outcome of the calls that they receive, each name once. */
export interface CallbacksConfig {
  readonly success: readonly Callback[];
  readonly failure: readonly Callback[];
}

/** Reads `callbacks`, `success_callback` and `failure_callback` of `proxy_settings`. */
export function readCallbacks(
  reading: Reading,
  proxy: Readonly<Partial<Record<keyof typeof LISTS, readonly string[]>>>,
): CallbacksConfig {
  const found = { success: new Set<Callback>(), failure: new Set<Callback>() };
  for (const list of Object.keys(LISTS) as (keyof typeof LISTS)[]) {
    for (const name of proxy[list] ?? []) {
      const callback = CALLBACKS.find((known) => known === name);
      if (callback === undefined) {
        reading.warnings.push(
          problemAt(
            reading,
            ["proxy_settings", list],
            `${unknownName("callback", name, CALLBACKS)}; it has no effect`,
          ),
        );
        continue;
      }
      for (const outcome of LISTS[list]) {
        found[outcome].add(callback);
      }
    }
  }
  return { success: [...found.success], failure: [...found.failure] };
}

/** Whether a callback is named in any of the lists. */
export function hasCallback(
  { success, failure }: CallbacksConfig,
  callback: Callback,
): boolean {
  return success.includes(callback) || failure.includes(callback);
}
