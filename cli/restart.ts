import { inWords } from "../core/duration.ts";
import type { ServiceView } from "../supervisor/runtimes/runtime.ts";
import { addressArg, findStack } from "./stack-client.ts";
import { print } from "./terminal.ts";
import { defineVerb } from "./verb.ts";

/** Includes the time for running calls of the gateway to finish. */
const RESTART_TIMEOUT_MS = 240_000;

export const restart = defineVerb({
  name: "restart",
  description: "Restart one service, also after the supervisor gave up on it.",
  example: "hearth restart gateway",
  args: {
    name: {
      type: "positional",
      required: true,
      description: "postgres, notes, echo or gateway",
    },
    ...addressArg,
  },
  run: async ({ name, url }) => {
    const path = `/api/restart/${encodeURIComponent(name)}`;
    const stack = findStack(url);
    print(`Restarting ${name} …`);
    const view = (await stack.ask(
      "POST",
      path,
      RESTART_TIMEOUT_MS,
    )) as ServiceView;
    print(
      `${view.name} is up (pid ${view.pid})${view.tookMs === null ? "" : ` after ${inWords(view.tookMs)}`}.`,
    );
    return 0;
  },
});
