import { locateHome } from "../supervisor/home/home.ts";
import { textOf } from "../core/failure.ts";
import { CommandClient } from "./provider-tokens.ts";
import { addressArg, endSession } from "./stack-client.ts";
import { complain, print, printAnswer, printJson } from "./terminal.ts";
import { UserLogins, type Login } from "./user-login.ts";
import { defineVerb, jsonArg } from "./verb.ts";
import { serverAddress } from "../core/server-address.ts";

export const logout = defineVerb({
  name: "logout",
  description:
    "End the session of `hearth login` and revoke its tokens at the provider.",
  example: "hearth logout",
  args: { ...jsonArg, ...addressArg },
  run: async ({ json, url }) => {
    const logins = new UserLogins(locateHome());
    const login = logins.find(
      url === undefined ? undefined : serverAddress(url),
    );
    if (login === undefined) {
      printAnswer(json, { address: null }, "Not signed in.");
      return 0;
    }
    // First: whatever is unavailable, this machine no longer has the tokens.
    await logins.remove(login.address);
    const problems = await endEverywhere(login);
    if (json) {
      printJson({ address: login.address, problems });
    } else {
      print(`Signed out of ${login.address} (${login.session.name}).`);
      complain(problems);
    }
    return 0;
  },
});

/** Ends the session at the console and the tokens at the provider; returns what did not work. */
async function endEverywhere(login: Login): Promise<readonly string[]> {
  const { provider, tokens } = login;
  const attempts = [
    {
      what: "the session at the console ends by itself",
      act: () => endSession(login),
    },
    {
      what: `the tokens of ${provider.title} end by themselves`,
      act: async () => (await CommandClient.open(provider)).revoke(tokens),
    },
  ];
  const problems: string[] = [];
  for (const { what, act } of attempts) {
    try {
      await act();
    } catch (error) {
      problems.push(`${what}: ${textOf(error)}`);
    }
  }
  return problems;
}
