import type { SignInLinkView } from "../console/http/sign-in-routes.ts";
import { LINK_MINUTES } from "../console/http/sign-in-links.ts";
import { addressArg, findStack, type StackClient } from "./stack-client.ts";
import { print } from "./terminal.ts";
import { defineVerb } from "./verb.ts";

export const open = defineVerb({
  name: "open",
  description: `Print a link that signs one browser in, within ${LINK_MINUTES} minutes.`,
  example: "hearth open",
  args: {
    json: { type: "boolean", description: "Print it as JSON" },
    ...addressArg,
  },
  run: async ({ json, url }) => {
    // Only printed: the arguments of a program that opens browsers can be read by every user of this machine.
    const link = await makeSignInLink(findStack(url));
    print(json ? JSON.stringify({ url: link }, null, 2) : link);
    return 0;
  },
});

/** A new link, at the address that browsers use where the supervisor knows it. */
export async function makeSignInLink(stack: StackClient): Promise<string> {
  const made = (await stack.ask(
    "POST",
    "/api/sign-in-links",
  )) as SignInLinkView;
  return `${made.publicUrl ?? stack.address}${made.path}`;
}
