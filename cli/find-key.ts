import { meant } from "../core/nearest.ts";
import type { AdminApi } from "../supervisor/gateway/admin-api.ts";
import { isKeyHash } from "../supervisor/gateway/key-hash.ts";
import { keyPage, type UsedKeyRow } from "../supervisor/gateway/rows.ts";
import { UsageError } from "./verb.ts";

export const keyArg = {
  key: {
    type: "positional",
    required: true,
    description: "Alias or hash of the key, or sk-...ABCD as listed",
  },
} as const;

/** What lists show of a key: its first and last characters. */
const MASKED = /^sk-\.\.\.\S{4}$/;

/** The key with this alias, hash or masked name. Throws a UsageError that suggests a similar alias. */
export async function findKey(
  gateway: AdminApi,
  named: string,
): Promise<UsedKeyRow> {
  if (MASKED.test(named)) {
    return findMasked(gateway, named);
  }
  if (named.startsWith("sk-")) {
    throw new UsageError(
      "a key must not be a command-line argument, which other users can read: use its alias, its hash or its short form (`hearth keys list` shows it).",
    );
  }
  const isHash = isKeyHash(named);
  const [found] = await keysWith(gateway, {
    [isHash ? "key_hash" : "key_alias"]: named,
  });
  if (found !== undefined) {
    return found;
  }
  const hint = isHash ? "" : meant(named, await listKeyAliases(gateway));
  throw new UsageError(
    `key with ${isHash ? "hash" : "alias"} "${named}" not found${hint}. Run \`hearth keys list\` for all keys.`,
  );
}

/** The only key that is shown as `named`; several may end alike. */
async function findMasked(
  gateway: AdminApi,
  named: string,
): Promise<UsedKeyRow> {
  const found = (await keysWith(gateway, { search: named })).filter(
    ({ key_name: name }) => name === named,
  );
  const [only] = found;
  if (only === undefined) {
    throw new UsageError(
      `key "${named}" not found. Run \`hearth keys list\` for all keys.`,
    );
  }
  if (found.length > 1) {
    throw new UsageError(
      `${found.length} keys are shown as ${named}: use the hash of one, ${found.map(({ token }) => token).join(" or ")}.`,
    );
  }
  return only;
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
