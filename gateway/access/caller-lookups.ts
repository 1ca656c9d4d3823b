import type { Pool } from "../database/pool.ts";
import type { KeyCaller, OtherPayer, PayerLimits } from "./callers.ts";
import { loadKey, loadPayer, type PayerTable } from "./load-callers.ts";
import { Lookup } from "./lookup.ts";

export interface Callers {
  readonly keys: Lookup<KeyCaller | null>;
  readonly users: Lookup<OtherPayer | null>;
  readonly endUsers: Lookup<OtherPayer | null>;
  readonly tags: Lookup<OtherPayer | null>;
  /** A notice of `announce_change`: table and id of the row that changed. */
  changed(table: string, id: string): void;
  /** After a time without notices everything is looked up again. */
  clear(): void;
}

/** Data that must be loaded with a payer before it counts as known. */
interface Preparations {
  readonly key: (key: KeyCaller) => Promise<void>;
  readonly payer: (entity: string, limits: PayerLimits) => Promise<void>;
}

export function createCallers(
  pool: Pool,
  keepMs: number,
  prepare: Preparations,
): Callers {
  const payers = (
    kind: string,
    table: PayerTable,
    column: "user_id" | "name",
  ) =>
    new Lookup({
      async load(id) {
        const payer = await loadPayer(pool, table, column, id);
        if (payer !== null) {
          await prepare.payer(`${kind}:${id}`, payer.limits);
        }
        return payer;
      },
      keepMs,
    });
  const lookups = {
    keys: new Lookup({
      async load(token) {
        const key = await loadKey(pool, token);
        if (key !== null) {
          await prepare.key(key);
        }
        return key;
      },
      keepMs,
    }),
    users: payers("user", "users", "user_id"),
    endUsers: payers("end_user", "end_users", "user_id"),
    tags: payers("tag", "tags", "name"),
  };
  return {
    ...lookups,
    changed: (table, id) => invalidateRow(lookups, table, id),
    clear: () => invalidateAll(lookups),
  };
}

type CallerLookups = Omit<Callers, "changed" | "clear">;

/** Marks everything that was read from a row of a table as stale. */
function invalidateRow(
  lookups: CallerLookups,
  table: string,
  id: string,
): void {
  const { keys, users, endUsers, tags } = lookups;
  switch (table) {
    case "keys":
      return keys.invalidate((key, token) => token === id || key?.token === id);
    case "rotated_keys":
      return keys.invalidate((_, token) => token === id);
    case "users":
      keys.invalidate((key) => key?.userId === id);
      return users.invalidate((_, userId) => userId === id);
    case "teams":
      return keys.invalidate((key) => key?.team?.id === id);
    case "team_members":
      return keys.invalidate((key) => `${key?.team?.id}/${key?.userId}` === id);
    case "organizations":
      return keys.invalidate((key) => key?.organization?.id === id);
    case "end_users":
      return endUsers.invalidate((_, userId) => userId === id);
    case "tags":
      return tags.invalidate((_, name) => name === id);
    default:
      // A tier, to which rows of any kind may point.
      invalidateAll(lookups);
  }
}

function invalidateAll({ keys, users, endUsers, tags }: CallerLookups): void {
  for (const lookup of [keys, users, endUsers, tags]) {
    lookup.invalidate(() => true);
  }
}
