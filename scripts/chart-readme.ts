import { readFileSync } from "node:fs";
import { format } from "prettier";
import { isMap, isScalar, LineCounter, parseDocument, type Pair } from "yaml";
import { inProject } from "../infra/project-files.ts";

export const CHART_README: string = inProject("charts/hearth/README.md");
const VALUES_FILE = inProject("charts/hearth/values.yaml");

/** One documented value of the chart. */
interface ChartValue {
  /** Such as gateway.journal.size. */
  readonly path: string;
  /** Its comment. */
  readonly meaning: string;
  readonly byDefault: unknown;
  /** Number of its line, from 1. */
  readonly line: number;
}

/** Every value with a comment, and every one without that contains no others. */
export function chartValues(
  text: string = readFileSync(VALUES_FILE, "utf8"),
): readonly ChartValue[] {
  const counter = new LineCounter();
  const lines = text.split("\n");
  const below = (pair: Pair, parents: readonly string[]): ChartValue[] => {
    if (!isScalar(pair.key) || pair.key.range == null) {
      throw new Error(`values.yaml has a key that is not a name`);
    }
    const { line } = counter.linePos(pair.key.range[0]);
    const path = [...parents, String(pair.key.value)];
    const meaning = commentAbove(lines, line);
    const { value } = pair;
    return meaning === "" && isMap(value) && value.items.length > 0
      ? value.items.flatMap((each) => below(each, path))
      : [
          {
            path: path.join("."),
            meaning,
            byDefault: isMap(value) ? value.toJSON() : value,
            line,
          },
        ];
  };
  const { contents } = parseDocument(text, { lineCounter: counter });
  if (!isMap(contents)) {
    throw new Error("values.yaml is not a mapping");
  }
  return contents.items
    .flatMap((pair) => below(pair, []))
    .map((value) => ({ ...value, byDefault: toPlain(value.byDefault) }));
}

function toPlain(node: unknown): unknown {
  return node !== null && typeof node === "object" && "toJSON" in node
    ? (node as { toJSON(): unknown }).toJSON()
    : node;
}

const HEADING = /^# ── (.+?) ─+$/;

/** The comment lines directly above a line. */
function commentAbove(lines: readonly string[], line: number): string {
  const found: string[] = [];
  for (let at = line - 2; at >= 0; at--) {
    const text = lines[at]?.trim() ?? "";
    if (!text.startsWith("#") || HEADING.test(text)) {
      break;
    }
    found.unshift(text.replace(/^# ?/, ""));
  }
  return found.join(" ");
}

interface Section {
  readonly title: string;
  readonly introduction: string;
  readonly line: number;
}

/** Headings with the paragraph below each. */
function sectionsOf(text: string): readonly Section[] {
  const lines = text.split("\n");
  return lines.flatMap((each, index) => {
    const title = HEADING.exec(each)?.[1];
    if (title === undefined) {
      return [];
    }
    const end = lines.findIndex(
      (line, at) => at > index && !line.startsWith("#"),
    );
    // A comment directly above a value is that value's.
    const introduction =
      lines[end] === ""
        ? lines
            .slice(index + 1, end)
            .map((line) => line.replace(/^# ?/, ""))
            .join(" ")
        : "";
    return [{ title, introduction, line: index + 1 }];
  });
}

function tableOf(values: readonly ChartValue[]): string {
  const rows = values.map(
    ({ path, meaning, byDefault }) =>
      `| \`${path}\` | \`${JSON.stringify(byDefault)}\` | ${meaning.replaceAll("|", "\\|")} |`,
  );
  return ["| value | default | meaning |", "| - | - | - |", ...rows].join("\n");
}

const BEGIN = "<!-- The values, as `npm run settings` writes them. -->";
const END = "<!-- End of the values. -->";

/** The chart's README with the table of values that values.yaml describes. */
export async function chartReadme(
  readme: string = readFileSync(CHART_README, "utf8"),
  text: string = readFileSync(VALUES_FILE, "utf8"),
): Promise<string> {
  const [before, after] = [readme.indexOf(BEGIN), readme.indexOf(END)];
  if (before < 0 || after < before) {
    throw new Error(`${CHART_README} lacks the lines ${BEGIN} and ${END}`);
  }
  const values = chartValues(text);
  const sections = sectionsOf(text);
  const general = { title: "Names", introduction: "", line: 0 };
  const parts = [general, ...sections].map(
    ({ title, introduction, line }, index) => {
      const end = sections[index]?.line ?? Infinity;
      const own = values.filter(
        (value) => value.line > line && value.line < end,
      );
      return `### ${title}\n\n${introduction}\n\n${tableOf(own)}`;
    },
  );
  return format(
    `${readme.slice(0, before)}${BEGIN}\n\n${parts.join("\n\n")}\n\n${readme.slice(after)}`,
    { parser: "markdown" },
  );
}
