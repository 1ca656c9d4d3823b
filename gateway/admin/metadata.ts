import type { Row } from "../database/rows.ts";

/** Fields that LiteLLM's clients also set in the metadata of a key or a team, where they bind as well. */
const BINDING = ["guardrails", "tags"];

/** Whether new metadata changes what it says of a field that binds calls. */
export function changesMetadata(
  field: string,
  before: Row,
  fields: Row,
): boolean {
  const said = ({ metadata }: Row) =>
    JSON.stringify((metadata as Row | null | undefined)?.[field] ?? []);
  return (
    BINDING.includes(field) &&
    fields["metadata"] !== undefined &&
    said(fields) !== said(before)
  );
}
