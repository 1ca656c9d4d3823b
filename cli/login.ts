import type { CommandSignInView } from "../console/http/command-routes.ts";
import type { CommandProvider } from "../console/sign-in/command-providers.ts";
import { unknownName } from "../core/config/problem.ts";
import { Failure } from "../core/failure.ts";
import { isTrustworthy } from "../core/tokens/signing-keys.ts";
import { locateHome } from "../supervisor/home/home.ts";
import { CommandClient, type Invitation } from "./provider-tokens.ts";
import {
  addressArg,
  findStack,
  gatewayOf,
  type StackClient,
} from "./stack-client.ts";
import { printAnswer } from "./terminal.ts";
import { openSession, UserLogins } from "./user-login.ts";
import { defineVerb, jsonArg, UsageError } from "./verb.ts";

export const login = defineVerb({
  name: "login",
  description:
    "Sign in with your own account; further commands act with its role.",
  example: "hearth login --url https://console.example.org",
  args: {
    provider: {
      type: "string",
      description: "Name of the provider, where there are several",
      valueHint: "name",
    },
    browser: {
      type: "boolean",
      description: "Sign in with a browser on this machine, without a code",
    },
    ...jsonArg,
    ...addressArg,
  },
  run: async ({ provider: named, browser, json, url }) => {
    const stack = findStack(url);
    const provider = await providerOf(stack, named);
    const client = await CommandClient.open(provider);
    const show = (invitation: Invitation) =>
      process.stderr.write(wordsFor(provider, invitation));
    const tokens =
      browser === true || !client.hasDeviceFlow
        ? await client.byBrowser(show)
        : await client.byDevice(show);
    const { address } = stack;
    const session = await openSession(address, provider.name, tokens);
    const { address: gateway } = await gatewayOf(address, session.token);
    await new UserLogins(locateHome()).store({
      address,
      gateway,
      provider: { ...provider, scopes: [...provider.scopes] },
      tokens,
      session,
    });
    const { name, role } = session;
    printAnswer(
      json,
      { address, name, role },
      `Signed in at ${address} as ${name}, with the role ${role}.`,
    );
    return 0;
  },
});

function wordsFor(
  { title, issuer }: CommandProvider,
  { url, code }: Invitation,
): string {
  const instruction =
    code === null
      ? "in a browser on this machine"
      : `in any browser, and check that it shows the code ${code}`;
  return `Sign in at ${title} (${issuer}) ${instruction}:\n\n  ${url}\n\nWaiting …\n`;
}

async function providerOf(
  stack: StackClient,
  named: string | undefined,
): Promise<CommandProvider> {
  // The provider's tokens are sent to it.
  if (!isTrustworthy(stack.address)) {
    throw new Failure(
      `${stack.address} is not an https address, so tokens sent to it could be read by others: use the https address of the console, or run \`hearth login\` on its host.`,
    );
  }
  const { providers } = (await stack.ask(
    "GET",
    "/api/sign-in",
  )) as CommandSignInView;
  const [only, ...others] = providers;
  if (only === undefined) {
    throw new Failure(
      `Sign-in for commands is not configured at ${stack.address}: set cli_client_id of a provider under sign_in in its configuration (docs/sign-in.md), or use the operator password.`,
    );
  }
  if (named === undefined && others.length > 0) {
    throw new UsageError(
      `choose a provider: add --provider ${providers.map(({ name }) => name).join(" or --provider ")}.`,
    );
  }
  const found = providers.find(({ name }) => name === named);
  if (named !== undefined && found === undefined) {
    throw new UsageError(
      `${unknownName(
        "provider",
        named,
        providers.map(({ name }) => name),
      )}.`,
    );
  }
  return found ?? only;
}
