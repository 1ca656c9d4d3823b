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
import type { NounContext } from "./noun-context.ts";

/** The only page that shows a key itself: the answer to the form that created it. `grace` is how long the old secret stays valid; null for a new key. */
export async function showSecret(
  request: FastifyRequest,
  reply: FastifyReply,
  context: NounContext,
  answer: unknown,
  grace: string | null,
): Promise<FastifyReply> {
  const { api, address, keys } = context;
  const created = newKeyRow.parse(answer);
  const name = keyTitle(created);
  // The key exists by now: the page omits the models where they cannot be listed.
  const models = await listModels(api.as(created.key)).catch(() => []);
  const model = modelToTry(models);
  return showPage(
    request,
    reply,
    {
      title:
        grace === null
          ? `Key "${name}" created.`
          : `Key "${name}" has a new secret.`,
      look: "ok",
      current: keys,
    },
    "key-shown",
    {
      key: created.key,
      href: `${keys}/${created.token}`,
      list: keys,
      former:
        grace === null
          ? null
          : grace === ""
            ? "The old secret is no longer valid."
            : `The old secret stays valid for ${graceWords(grace)} and shares the key's budget.`,
      call:
        model === undefined
          ? null
          : chatCommand(address, created.key, model).join("\n"),
      usage: `${address}/me`,
    },
  );
}

/** The field of the rotation. */
export const graceField: Field & { readonly kind: "choice" } = {
  kind: "choice",
  name: "grace",
  label: "Old secret stays valid",
  value: "1d",
  values: [
    ["", "no longer (denied immediately)"],
    ["1h", "for one hour"],
    ["1d", "for one day"],
    ["1w", "for one week"],
  ],
};

function graceWords(grace: string): string {
  const known = graceField.values.find(([written]) => written === grace);
  return known?.[1] ?? grace;
}
