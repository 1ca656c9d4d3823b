import { shortKeyHash } from "../gateway/key-hash.ts";
import type { NamedSums } from "./daily-sums.ts";
import type { Sums } from "./sums.ts";

/** A user, key, team, alias or provider, with its previous spend. */
export type Payer = Sums & {
  readonly id: string;
  readonly name: string;
  /** Dollars in the previous period. */
  readonly previous: number;
  /** Of all spend, from 0 to 1. */
  readonly share: number;
};

const NONE = "—";

/** Highest spend first, without payers of only the previous period. */
export function rankPayers(
  now: readonly NamedSums[],
  before: readonly NamedSums[],
  total: number,
): readonly Payer[] {
  const previous = new Map(before.map(({ id, sums }) => [id, sums.spend]));
  return now
    .map(({ id, name, sums }) => ({
      id,
      name: name || (id === "" ? NONE : shortKeyHash(id)),
      ...sums,
      previous: previous.get(id) ?? 0,
      share: total === 0 ? 0 : sums.spend / total,
    }))
    .toSorted((a, b) => b.spend - a.spend || (a.id < b.id ? -1 : 1));
}
