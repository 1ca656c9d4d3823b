import { grouped, readable } from "../../../core/words.ts";

interface LimitedRow {
  readonly models: readonly string[];
  readonly rpm_limit: number | null;
  readonly tpm_limit: number | null;
  readonly max_parallel_requests: number | null;
}

/** What limits a payer besides its budget, as figures. */
export function limitsOf(row: LimitedRow): readonly {
  readonly name: string;
  readonly value: string;
}[] {
  const limit = (value: number | null) =>
    value === null ? "no limit" : grouped(value);
  return [
    { name: "Requests a minute", value: limit(row.rpm_limit) },
    { name: "Tokens a minute", value: limit(row.tpm_limit) },
    { name: "Calls at the same time", value: limit(row.max_parallel_requests) },
    {
      name: "Models",
      value:
        row.models.length === 0 ? "all" : row.models.map(readable).join(", "),
    },
  ];
}
