import { inWords } from "../core/duration.ts";
import type { ServiceView } from "../supervisor/runtimes/runtime.ts";
import { addressArg, findStack } from "./stack-client.ts";
import { print } from "./terminal.ts";
import { defineVerb } from "./verb.ts";

/** The gateway may finish its calls first. */
const LONGEST_RESTART_MS = 240_000;

export const restart = defineVerb({
  name: "restart",
  description:
    "Stop and start one service; one that was given up is tried again.",
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
      LONGEST_RESTART_MS,
    )) as ServiceView;
    print(
      `${view.name} is up again, pid ${view.pid}${view.tookMs === null ? "" : `, after ${inWords(view.tookMs)}`}.`,
    );
    return 0;
  },
});
