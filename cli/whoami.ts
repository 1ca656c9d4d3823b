import type {
  CommandSignInView,
  MeView,
} from "../console/http/command-routes.ts";
import { inZone } from "./local-time.ts";
import {
  addressArg,
  currentLogin,
  findStack,
  type StackClient,
} from "./stack-client.ts";
import { print, printJson } from "./terminal.ts";
import { defineVerb, jsonArg } from "./verb.ts";

export const whoami = defineVerb({
  name: "whoami",
  description: "Show who makes the requests of commands, and with which role.",
  example: "hearth whoami",
  args: { ...jsonArg, ...addressArg },
  run: async ({ json, url }) => {
    const stack = findStack(url);
    // As the provider says now: a session that has ended is renewed.
    const { name, role } = (await stack.ask("GET", "/api/me")) as MeView;
    const login = currentLogin(url);
    const { address } = stack;
    if (json) {
      printJson({
        address,
        name,
        role,
        provider: login?.provider.name ?? null,
        endsAt:
          login === undefined
            ? null
            : new Date(login.session.endsAt).toISOString(),
      });
      return 0;
    }
    print(`${name}, with the role ${role}, at ${address}`);
    print(
      login === undefined
        ? await adviceFor(stack)
        : `Signed in through ${login.provider.title} (${login.provider.issuer}); the session ends ${inZone(login.session.endsAt)} and is renewed while the account is signed in there.`,
    );
    return 0;
  },
});

async function adviceFor(stack: StackClient): Promise<string> {
  const { providers } = (await stack.ask(
    "GET",
    "/api/sign-in",
  )) as CommandSignInView;
  return providers.length === 0
    ? "With the operator's credentials; sign-in for commands is not configured here (docs/sign-in.md)."
    : "With the operator's credentials; run `hearth login` to act with your own account.";
}
