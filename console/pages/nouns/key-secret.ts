import type { FastifyReply, FastifyRequest } from "fastify";
import {
  chatCommand,
  listModels,
  modelToTry,
} from "../../../supervisor/gateway/first-call.ts";
import { newKeyRow } from "../../../supervisor/gateway/rows.ts";
import { showPage } from "../../http/show-page.ts";
import type { Field } from "../field.ts";
import { keyTitle } from "./key-list.ts";
import { KEYS_PATH, type NounContext } from "./noun-context.ts";

/** The one page on which a key itself is shown: the answer to the form that made it. `grace` is how long the former secret works on; null for a new key. */
export async function showSecret(
  request: FastifyRequest,
  reply: FastifyReply,
  { api, address }: NounContext,
  answer: unknown,
  grace: string | null,
): Promise<FastifyReply> {
  const made = newKeyRow.parse(answer);
  const name = keyTitle(made);
  // The key is made: where its models cannot be asked for, the page goes without.
  const models = await listModels(api.as(made.key)).catch(() => []);
  const model = modelToTry(models);
  return showPage(
    request,
    reply,
    {
      title: grace === null ? `${name} is made.` : `${name} has a new secret.`,
      look: "ok",
      current: KEYS_PATH,
    },
    "key-shown",
    {
      key: made.key,
      href: `${KEYS_PATH}/${made.token}`,
      former:
        grace === null
          ? null
          : grace === ""
            ? "The former secret is refused from now on."
            : `The former secret works for ${graceWords(grace)} more: one budget, whichever is used.`,
      call:
        model === undefined
          ? null
          : chatCommand(address, made.key, model).join("\n"),
      usage: `${address}/me`,
    },
  );
}

/** What is asked when a key is to get a new secret. */
export const graceField: Field & { readonly kind: "choice" } = {
  kind: "choice",
  name: "grace",
  label: "The old secret works on for",
  value: "1d",
  values: [
    ["", "no time: it is refused at once"],
    ["1h", "one hour"],
    ["1d", "one day"],
    ["1w", "one week"],
  ],
};

function graceWords(grace: string): string {
  const known = graceField.values.find(([written]) => written === grace);
  return known?.[1] ?? grace;
}
