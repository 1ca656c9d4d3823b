import { inWords } from "../core/duration.ts";
import type { ServiceView } from "../supervisor/runtimes/runtime.ts";
import type { Status } from "../supervisor/status.ts";
import { locateHome } from "../supervisor/home/home.ts";
import { addressArg, findStack, supervisorHere } from "./stack-client.ts";
import { complain, print, printAnswer } from "./terminal.ts";
import { findKeyAdvice } from "./unseen-variables.ts";
import { defineVerb, jsonArg } from "./verb.ts";

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
    ...jsonArg,
    ...addressArg,
  },
  run: async ({ name, json, url }) => {
    const path = `/api/restart/${encodeURIComponent(name)}`;
    const stack = findStack(url);
    if (!json) {
      const { services } = (await stack.ask("GET", "/api/status")) as Status;
      // Of an unknown one, the supervisor suggests a similar name.
      if (services.some((service) => service.name === name)) {
        print(`Restarting ${name} …`);
      }
    }
    const view = (await stack.ask(
      "POST",
      path,
      RESTART_TIMEOUT_MS,
    )) as ServiceView;
    printAnswer(
      json,
      view,
      `${view.name} is up (pid ${view.pid})${view.tookMs === null ? "" : ` after ${inWords(view.tookMs)}`}.`,
    );
    if (name === "gateway") {
      const home = locateHome();
      const isHere = supervisorHere(home)?.address === stack.address;
      const advice = isHere ? await findKeyAdvice(home, process.env) : [];
      complain(advice.map(({ what, fix }) => `${what}: ${fix}.`));
    }
    return 0;
  },
});
