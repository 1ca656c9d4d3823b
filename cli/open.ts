import type { SignInLinkView } from "../console/http/sign-in-routes.ts";
import { LINK_MINUTES } from "../console/http/sign-in-links.ts";
import { addressArg, findStack, type StackClient } from "./stack-client.ts";
import { printAnswer } from "./terminal.ts";
import { defineVerb, jsonArg } from "./verb.ts";

export const open = defineVerb({
  name: "open",
  description: `Print a link that signs in one browser within ${LINK_MINUTES} minutes.`,
  example: "hearth open",
  args: {
    ...jsonArg,
    ...addressArg,
  },
  run: async ({ json, url }) => {
    // Printed, not opened: arguments of a program that opens browsers are visible to every user of this machine.
    const link = await createSignInLink(findStack(url));
    printAnswer(json, { url: link }, link);
    return 0;
  },
});

/** Creates a link, at the public address if the supervisor has one. */
export async function createSignInLink(stack: StackClient): Promise<string> {
  const created = (await stack.ask(
    "POST",
    "/api/sign-in-links",
  )) as SignInLinkView;
  return `${created.publicUrl ?? stack.address}${created.path}`;
}
