import type { CheckView } from "../supervisor/checks/watched.ts";
import { addressArg, findStack } from "./stack-client.ts";
import { checkCell } from "./states.ts";
import { alignColumns, printAnswer } from "./terminal.ts";
import { defineVerb, jsonArg } from "./verb.ts";

const CHECK_TIMEOUT_MS = 120_000;

export const check = defineVerb({
  name: "check",
  description: "Run one check now and show its result.",
  example: "hearth check gateway",
  args: {
    name: {
      type: "positional",
      required: true,
      description: "A check of config/supervisor.yaml",
    },
    ...jsonArg,
    ...addressArg,
  },
  run: async ({ name, json, url }) => {
    const path = `/api/checks/${encodeURIComponent(name)}`;
    const view = (await findStack(url).ask(
      "POST",
      path,
      CHECK_TIMEOUT_MS,
    )) as CheckView;
    const [line] = alignColumns([
      [
        { text: view.name, tone: "strong" },
        checkCell(view.state, view.inhibitedBy),
        { text: `${view.latest?.latencyMs ?? 0} ms` },
        { text: view.latest?.text ?? "" },
      ],
    ]);
    printAnswer(json, view, line ?? "");
    return view.latest?.ok === true ? 0 : 1;
  },
});
