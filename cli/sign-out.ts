import { locateHome } from "../supervisor/home/home.ts";
import { readVariable } from "../core/environment.ts";
import { endStoredSessions } from "../supervisor/history/sessions.ts";
import { addressArg, findStack, supervisorHere } from "./stack-client.ts";
import { print } from "./terminal.ts";
import { defineVerb, UsageError } from "./verb.ts";

export const signOut = defineVerb({
  name: "sign-out",
  description:
    "Sign every browser out, and end the links that `hearth open` printed.",
  example: "hearth sign-out --all",
  args: {
    all: { type: "boolean", description: "Every browser, everywhere" },
    ...addressArg,
  },
  run: async ({ all, url }) => {
    if (all !== true) {
      throw new UsageError(
        "`hearth sign-out` ends all sessions: add --all. One browser signs out with the button on its page.",
      );
    }
    const home = locateHome();
    const named = url ?? readVariable("HEARTH_URL");
    if (named === undefined && supervisorHere(home) === undefined) {
      endStoredSessions(home.history);
      print("Every browser is signed out.");
      return 0;
    }
    const { ended } = (await findStack(url).ask(
      "POST",
      "/api/sign-out-all",
    )) as { readonly ended: number };
    print(
      `Every browser is signed out (${ended} ${ended === 1 ? "session" : "sessions"} ended), and no link signs one in any more.`,
    );
    return 0;
  },
});
