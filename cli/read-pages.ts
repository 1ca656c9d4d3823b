/** One page of a list of the gateway. */
export interface RowsPage<Row> {
  readonly rows: readonly Row[];
  readonly total: number;
  readonly pages: number;
}

/** Reads pages, from 1, until there are `most` rows or no more. */
export async function readPages<Row>(
  most: number,
  read: (page: number) => Promise<RowsPage<Row>>,
): Promise<{ readonly rows: readonly Row[]; readonly total: number }> {
  const rows: Row[] = [];
  for (let page = 1; ; page += 1) {
    const answer = await read(page);
    rows.push(...answer.rows);
    if (rows.length >= most || page >= answer.pages) {
      return { rows: rows.slice(0, most), total: answer.total };
    }
  }
}

/** The line below a list that was cut. */
export function moreRows(shown: number, total: number): readonly string[] {
  return total > shown
    ? ["", `${total - shown} more; show all with --most ${total}.`]
    : [];
}

export const PAGE_SIZE = 100;

export const mostArg = {
  most: {
    type: "string",
    default: "100",
    description: "Maximum number of rows, newest first",
    valueHint: "number",
  },
} as const;
