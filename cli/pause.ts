import type { CheckView } from "../supervisor/checks/watched.ts";
import { addressArg, findStack } from "./stack-client.ts";
import { print } from "./terminal.ts";
import { defineVerb } from "./verb.ts";

const name = {
  type: "positional",
  required: true,
  description: "A check that `hearth status` shows",
} as const;
const json = { type: "boolean", description: "Print it as JSON" } as const;

export const pause = defineVerb({
  name: "pause",
  description: "Stop looking at a check, also after a restart, until resumed.",
  example: 'hearth pause notes --why "moving its disk"',
  args: {
    name,
    why: {
      type: "string",
      description: "The reason, for whoever looks next",
      valueHint: "text",
    },
    json,
    ...addressArg,
  },
  run: async ({ name, why, json, url }) => {
    const view = (await findStack(url).ask(
      "POST",
      `/api/pause/${encodeURIComponent(name)}`,
      undefined,
      why === undefined ? undefined : { why },
    )) as CheckView;
    print(
      json
        ? JSON.stringify(view, null, 2)
        : `${view.name} is not looked at, told of or healed any more; \`hearth resume ${view.name}\` ends that.`,
    );
    return 0;
  },
});

export const resume = defineVerb({
  name: "resume",
  description: "Look at a paused check again.",
  example: "hearth resume notes",
  args: { name, json, ...addressArg },
  run: async ({ name, json, url }) => {
    const view = (await findStack(url).ask(
      "POST",
      `/api/resume/${encodeURIComponent(name)}`,
    )) as CheckView;
    print(
      json
        ? JSON.stringify(view, null, 2)
        : `${view.name} is looked at again; \`hearth check ${view.name}\` shows what it sees.`,
    );
    return 0;
  },
});
