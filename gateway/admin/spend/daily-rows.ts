/** Columns of `daily_spend` by which reports filter or group. */
export type PayerColumn =
  "api_key" | "user_id" | "team_id" | "organization_id" | "end_user";

/** Payers with separate sums over all keys. */
const SUMMED: Partial<Record<PayerColumn, string>> = {
  team_id: "team",
  organization_id: "organization",
};

/** The smallest set of daily rows that has these columns of payers; it also has the day, the model and all sums. */
export function dailyRowsWith(columns: readonly PayerColumn[]): string {
  const [column, ...others] = new Set(columns);
  if (column === undefined) {
    return "(SELECT * FROM daily_part_spend WHERE part = 'proxy') AS daily";
  }
  const part = others.length === 0 ? SUMMED[column] : undefined;
  return part === undefined
    ? "daily_spend"
    : `(SELECT *, id AS ${column} FROM daily_part_spend WHERE part = '${part}') AS daily`;
}
