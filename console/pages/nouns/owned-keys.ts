import { grouped } from "../../../core/words.ts";
import { keyPage } from "../../../supervisor/gateway/rows.ts";
import { OWNED_KEY_COLUMNS } from "./key-list.ts";
import { plainHeads, type ListHead } from "./list-view.ts";
import { withQuery } from "./noun-address.ts";
import { cellsOf, type Cell } from "./noun-columns.ts";
import { KEYS_PATH, type NounContext } from "./noun-context.ts";

/** Shown on the page of a user or a team. */
const SHOWN_KEYS = 10;

/** The keys of a user or a team with the highest spend, as templates/keys-of.eta shows them. */
interface OwnedKeys {
  readonly columns: readonly ListHead[];
  readonly rows: readonly (readonly Cell[])[];
  /** Link to create a key of this owner. */
  readonly create: string;
  /** Link to all of them, where more than these exist. */
  readonly all: { readonly href: string; readonly total: string } | null;
}

export async function readOwnedKeys(
  { api, timeZone }: NounContext,
  owner: "user" | "team",
  id: string,
): Promise<OwnedKeys> {
  const query = {
    [`${owner}_id`]: id,
    return_full_object: "true",
    sort_by: "spend",
    size: String(SHOWN_KEYS),
  };
  const page = keyPage.parse(
    await api.ask("GET", withQuery("/key/list", query)),
  );
  const at = { timeZone, now: Date.now() };
  return {
    columns: plainHeads(OWNED_KEY_COLUMNS),
    rows: cellsOf(OWNED_KEY_COLUMNS, page.keys, at),
    create: withQuery(`${KEYS_PATH}/new`, { [owner]: id }),
    all:
      page.total_count <= page.keys.length
        ? null
        : {
            href: withQuery(KEYS_PATH, { search: id }),
            total: grouped(page.total_count),
          },
  };
}
