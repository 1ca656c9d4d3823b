import { nearest } from "../core/nearest.ts";
import { Failure } from "../core/failure.ts";
import type { AdminApi } from "../supervisor/gateway/admin-api.ts";
import { keyPage, type UsedKeyRow } from "../supervisor/gateway/rows.ts";
import { UsageError } from "./verb.ts";

export const keyArg = {
  key: {
    type: "positional",
    required: true,
    description: "Alias or hash of the key",
  },
} as const;

/** The key with this alias or hash. Throws a Failure that suggests a similar alias. */
export async function findKey(
  gateway: AdminApi,
  named: string,
): Promise<UsedKeyRow> {
  if (named.startsWith("sk-")) {
    throw new UsageError(
      "a key must not be a command-line argument, which other users can read: use its alias or hash (`hearth keys list --json` shows both).",
    );
  }
  const isHash = /^[0-9a-f]{64}$/.test(named);
  const [found] = await keysWith(gateway, {
    [isHash ? "key_hash" : "key_alias"]: named,
  });
  if (found !== undefined) {
    return found;
  }
  const similar = isHash
    ? undefined
    : nearest(named, await listKeyAliases(gateway));
  throw new Failure(
    `key with ${isHash ? "hash" : "alias"} "${named}" not found${similar === undefined ? "" : ` (did you mean "${similar}"?)`}. Run \`hearth keys list\` for all keys.`,
  );
}

/** The names of the newest hundred keys. */
export async function listKeyAliases(
  gateway: AdminApi,
): Promise<readonly string[]> {
  const keys = await keysWith(gateway, { size: "100" });
  return keys.flatMap(({ key_alias: alias }) => alias ?? []);
}

async function keysWith(
  gateway: AdminApi,
  filter: Readonly<Record<string, string>>,
): Promise<readonly UsedKeyRow[]> {
  const query = new URLSearchParams({ ...filter, return_full_object: "true" });
  return keyPage.parse(await gateway.ask("GET", `/key/list?${query}`)).keys;
}
