/** Tables with fewer columns fit on a phone. */
const LEAST_COLUMNS_OF_CARDS = 3;
/** Tables with as many columns need narrow ones. */
const MANY_COLUMNS = 6;

/** A cell with its markup. Tables are not nested, and no text contains "<", because templates escape it. */
const CELL = /<(t[hd])\b([^>]*)>([^]*?)<\/\1>/g;
const ROW = /(<tr\b[^>]*>)([^]*?)(<\/tr>)/g;
const TABLE = /<table\b([^>]*)>([^]*?)<\/table>/g;

/** A tag, or where an email address may break. */
const TAG_OR_AT = /<[^>]*>|(?<=\w)@/g;

/** What counts as zero in a column of numbers. */
const ZERO = /^(?:|0|0(?:\.0+)? ?%|\$ ?0(?:\.0+)?|[–-])$/;

/**
 * Prepares the tables of a page for narrow screens: a table of three and more columns gets the class `cards`, one of many columns
 * also `many`, and each of its cells the title of its column in `data-label`. Columns of numbers (class `num`) that are zero in every row are left out,
 * except the sorted one. Email addresses break after their "@", rather than within a word. Tables without column titles, or with cells that span columns, stay as they are.
 */
export function fitTables(markup: string): string {
  return markup.replace(TABLE, (table, attributes: string, inner: string) => {
    const [head = ""] = /<thead>[^]*?<\/thead>/.exec(inner) ?? [];
    if (head === "" || inner.includes("colspan")) {
      return table;
    }
    const columns = columnsOf(head, inner.replace(head, ""));
    const { length: shown } = columns.filter(({ hidden }) => !hidden);
    const isCards = shown >= LEAST_COLUMNS_OF_CARDS;
    const names = shown >= MANY_COLUMNS ? "cards many" : "cards";
    return `<table${isCards ? withClass(attributes, names) : attributes}>${inner.replace(
      ROW,
      (_row, open: string, cells: string, close: string) =>
        `${open}${fitCells(cells, columns, isCards)}${close}`,
    )}</table>`;
  });
}

interface Column {
  readonly title: string;
  readonly hidden: boolean;
}

function columnsOf(head: string, rest: string): readonly Column[] {
  const heads = cellsIn(head);
  const rows = [...rest.matchAll(ROW)].map(([, , cells = ""]) =>
    cellsIn(cells),
  );
  const zero = heads.map(
    ({ attributes }, at) =>
      /class="[^"]*\bnum\b/.test(attributes) &&
      !attributes.includes("aria-sort") &&
      rows.length > 0 &&
      rows.every((cells) => ZERO.test(textOf(cells[at]?.content ?? ""))),
  );
  return heads.map(({ content }, at) => ({
    title: textOf(
      content.replace(/<span aria-hidden="true">[^]*?<\/span>/, ""),
    ),
    hidden: zero[at] === true,
  }));
}

function fitCells(
  cells: string,
  columns: readonly Column[],
  isCards: boolean,
): string {
  let at = -1;
  return cells.replace(
    CELL,
    (_cell, tag: string, attributes: string, content: string) => {
      at += 1;
      const { title = "", hidden = false } = columns[at] ?? {};
      if (hidden) {
        return "";
      }
      const label =
        !isCards || tag === "th" || title === ""
          ? ""
          : ` data-label="${title}"`;
      return `<${tag}${attributes}${label}>${content.replace(TAG_OR_AT, (part) => (part === "@" ? "@<wbr>" : part))}</${tag}>`;
    },
  );
}

function cellsIn(row: string) {
  return [...row.matchAll(CELL)].map(([, , attributes = "", content = ""]) => ({
    attributes,
    content,
  }));
}

/** Entities stay: the text is used as an attribute again. */
function textOf(content: string): string {
  return content
    .replace(/<[^>]*>/g, "")
    .replace(/"/g, "&quot;")
    .trim();
}

function withClass(attributes: string, name: string): string {
  return attributes.includes('class="')
    ? attributes.replace('class="', `class="${name} `)
    : `${attributes} class="${name}"`;
}
