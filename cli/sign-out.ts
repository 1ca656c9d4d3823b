import { locateHome } from "../supervisor/home/home.ts";
import { readVariable } from "../core/environment.ts";
import { endStoredSessions } from "../supervisor/history/sessions.ts";
import { addressArg, findStack, supervisorHere } from "./stack-client.ts";
import { printAnswer } from "./terminal.ts";
import { defineVerb, jsonArg, UsageError } from "./verb.ts";
import { counted } from "../core/words.ts";

export const signOut = defineVerb({
  name: "sign-out",
  description:
    "Sign out all browsers and revoke the links printed by `hearth open`.",
  example: "hearth sign-out --all",
  args: {
    all: { type: "boolean", description: "All browsers" },
    ...jsonArg,
    ...addressArg,
  },
  run: async ({ all, json, url }) => {
    if (all !== true) {
      throw new UsageError(
        "`hearth sign-out` ends all sessions: add --all. To sign out one browser, use the button on its page.",
      );
    }
    const home = locateHome();
    const named = url ?? readVariable("HEARTH_URL");
    if (named === undefined && supervisorHere(home) === undefined) {
      endStoredSessions(home.history);
      printAnswer(json, { ended: null }, "All browsers signed out.");
      return 0;
    }
    const { ended } = (await findStack(url).ask(
      "POST",
      "/api/sign-out-all",
    )) as { readonly ended: number };
    printAnswer(
      json,
      { ended },
      `All browsers signed out (${counted(ended, "session")} ended); earlier sign-in links are invalid.`,
    );
    return 0;
  },
});
