import { Refusal } from "../../../supervisor/gateway/admin-api.ts";
import type { UsedKeyRow } from "../../../supervisor/gateway/rows.ts";
import { OWN_PAGE_PATH } from "../frame.ts";
import {
  findKey,
  findKeyWithUse,
  KEY_ACTIONS,
  KEY_FIELDS,
  keyNoun,
  type Key,
} from "../nouns/key-noun.ts";
import type { Noun } from "../nouns/noun.ts";
import { addressInPath } from "../nouns/noun-address.ts";
import type { NounContext } from "../nouns/noun-context.ts";

/** For whom a key is, and what is stored of its calls, is for admins. */
const ADMIN_FIELDS = ["user_id", "store_prompts"];
const OWN_ACTIONS = ["rotate", "delete"];

/** The keys of the signed-in person. */
export function myKeyNoun(
  context: NounContext,
  person: () => string | undefined,
): Noun<UsedKeyRow, Key> {
  const noun = keyNoun(context);
  const onlyOwn =
    (find: typeof findKey): typeof findKey =>
    async (at, id) => {
      const key = await find(at, id);
      // Admins of a team reach its other keys, too, but not here.
      if (key.row.user_id !== person()) {
        throw new Refusal("Key not found.", 404, null);
      }
      return key;
    };
  return {
    ...noun,
    address: addressInPath(OWN_PAGE_PATH),
    form: {
      ...noun.form,
      fields: KEY_FIELDS.filter(({ name }) => !ADMIN_FIELDS.includes(name)),
    },
    find: onlyOwn(findKey),
    detail: {
      ...noun.detail,
      find: onlyOwn(findKeyWithUse),
      actions: KEY_ACTIONS.filter(({ verb }) => OWN_ACTIONS.includes(verb)),
    },
  };
}
