import { countOf } from "./limit-options.ts";
import { print, printJson, printTable, type RowTable } from "./terminal.ts";
import { jsonArg } from "./verb.ts";

/** One page of a list of the gateway. */
interface RowsPage<Row> {
  readonly rows: readonly Row[];
  readonly total: number;
  readonly pages: number;
}

/** A list of the gateway, as `hearth keys list` shows it. */
interface RowList<Row> extends RowTable<Row> {
  /** "keys": the name of the rows in JSON. */
  readonly name: string;
  /** Reads the page with this number, from 1, and size. */
  readonly read: (page: number, size: number) => Promise<RowsPage<Row>>;
}

const PAGE_SIZE = 100;

export const rowListArgs = {
  most: {
    type: "string",
    default: "100",
    description: "Maximum number of rows, newest first",
    valueHint: "number",
  },
  ...jsonArg,
} as const;

/** Prints the first `most` rows, and how many more there are. */
export async function printRows<Row>(
  {
    most,
    json,
  }: { readonly most: string; readonly json?: boolean | undefined },
  { name, empty, headings, rowOf, read }: RowList<Row>,
): Promise<0> {
  const { rows, total } = await readPages(countOf("--most", most), read);
  if (json === true) {
    printJson({ [name]: rows, total });
  } else if (rows.length === 0) {
    print(empty);
  } else {
    printTable(headings, rows.map(rowOf), ["resets", "used", "id"]);
    if (total > rows.length) {
      print(`\n${total - rows.length} more; show all with --most ${total}.`);
    }
  }
  return 0;
}

/** Reads pages until there are `most` rows or no more. */
async function readPages<Row>(
  most: number,
  read: RowList<Row>["read"],
): Promise<{ readonly rows: readonly Row[]; readonly total: number }> {
  const rows: Row[] = [];
  for (let page = 1; ; page += 1) {
    const answer = await read(page, PAGE_SIZE);
    rows.push(...answer.rows);
    if (rows.length >= most || page >= answer.pages) {
      return { rows: rows.slice(0, most), total: answer.total };
    }
  }
}
