import { grouped, readable } from "../../core/words.ts";
import type { ChartData, Colour } from "../../core/charts.ts";

export interface TableView {
  readonly label: string;
  readonly columns: readonly {
    readonly name: string;
    readonly figure: boolean;
  }[];
  readonly rows: readonly (readonly string[])[];
  /** Collapsed in a `<details>`. */
  readonly more: readonly (readonly string[])[];
  readonly moreText: string;
}

export interface ChartView {
  readonly title: string;
  readonly svg: string;
  /** Name of its steps: "day", "hour". */
  readonly step: string;
  readonly series: readonly {
    readonly name: string;
    readonly colour: Colour;
  }[];
  readonly rows: readonly {
    readonly label: string;
    readonly values: readonly string[];
  }[];
}

const SHOWN_ROWS = 12;
const MAX_NAME_LENGTH = 80;

/** A name on a page: readable, and truncated if it is long. The other formats contain it in full. */
export function shortName(given: string): string {
  const name = readable(given);
  const letters = [...name];
  return letters.length <= MAX_NAME_LENGTH
    ? name
    : `${letters.slice(0, MAX_NAME_LENGTH - 1).join("")}…`;
}

/** Columns whose names start with `#` are figures. */
export function tableOf(
  label: string,
  columns: readonly string[],
  rows: readonly (readonly string[])[],
): TableView {
  const more = rows.slice(SHOWN_ROWS);
  return {
    label,
    columns: columns.map((name) => ({
      name: name.replace(/^#/, ""),
      figure: name.startsWith("#"),
    })),
    rows: rows.slice(0, SHOWN_ROWS),
    more,
    moreText: grouped(more.length),
  };
}

/** Draws a chart with a description for screen readers. */
export type Draw = (data: ChartData, description: string) => string;

/** A chart with the table of its values; `write` formats a value of the table. */
export function chartOf(
  title: string,
  step: string,
  draw: Draw,
  data: ChartData,
  write: (value: number) => string,
): ChartView {
  return {
    title,
    step,
    svg: draw(data, `${title}; the numbers are in the table below`),
    series: data.series.map(({ name, colour }) => ({ name, colour })),
    rows: data.labels.map((label, at) => ({
      label,
      values: data.series.map(({ values }) => {
        const value = values[at];
        return value === null || value === undefined ? "—" : write(value);
      }),
    })),
  };
}
