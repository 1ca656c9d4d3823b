import type { CheckView } from "../supervisor/checks/watched.ts";
import { addressArg, findStack } from "./stack-client.ts";
import { printAnswer } from "./terminal.ts";
import { defineVerb, jsonArg } from "./verb.ts";

const name = {
  type: "positional",
  required: true,
  description: "A check from `hearth status`",
} as const;

export const pause = defineVerb({
  name: "pause",
  description: "Pause a check, also across restarts, until it is resumed.",
  example: 'hearth pause notes --why "moving its disk"',
  args: {
    name,
    why: {
      type: "string",
      description: "The reason, shown to other operators",
      valueHint: "text",
    },
    ...jsonArg,
    ...addressArg,
  },
  run: async ({ name, why, json, url }) => {
    const view = (await findStack(url).ask(
      "POST",
      `/api/pause/${encodeURIComponent(name)}`,
      undefined,
      why === undefined ? undefined : { why },
    )) as CheckView;
    printAnswer(
      json,
      view,
      `${view.name} is paused: no checks, and no alerts or restarts after them. A process that ends is still started again. Resume with \`hearth resume ${view.name}\`.`,
    );
    return 0;
  },
});

export const resume = defineVerb({
  name: "resume",
  description: "Resume a paused check.",
  example: "hearth resume notes",
  args: { name, ...jsonArg, ...addressArg },
  run: async ({ name, json, url }) => {
    const view = (await findStack(url).ask(
      "POST",
      `/api/resume/${encodeURIComponent(name)}`,
    )) as CheckView;
    printAnswer(
      json,
      view,
      `${view.name} resumed. Run \`hearth check ${view.name}\` for its result.`,
    );
    return 0;
  },
});
