import { statSync } from "node:fs";
import { join } from "node:path";
import { listDirectory } from "../../core/list-directory.ts";
import type { ReportFormat, ReportKind } from "./report.ts";

/** A report in its written formats. */
export interface WrittenReport {
  readonly kind: ReportKind;
  /** First and last day, `2026-11-21`. */
  readonly from: string;
  readonly until: string;
  /** Milliseconds since 1970. */
  readonly madeAt: number;
  readonly files: readonly ReportFile[];
}

export interface ReportFile {
  readonly name: string;
  readonly format: ReportFormat;
  readonly bytes: number;
}

const FILE_NAME =
  /^(spend|health)-(\d{4}-\d\d-\d\d)(?:-to-(\d{4}-\d\d-\d\d))?\.(txt|json|csv|html)$/;
const formats: Readonly<Record<string, ReportFormat>> = {
  txt: "text",
  json: "json",
  csv: "csv",
  html: "html",
};

/** All reports in a directory, newest days first; empty if it does not exist. */
export function listReports(directory: string): readonly WrittenReport[] {
  const reports = new Map<string, WrittenReport>();
  for (const name of listDirectory(directory)) {
    const [, kind, from = "", until = from] = FILE_NAME.exec(name) ?? [];
    const file = findReport(directory, name);
    if (file === undefined) {
      continue;
    }
    const stem = name.replace(/\.\w+$/, "");
    const known = reports.get(stem);
    reports.set(stem, {
      kind: kind === "spend" ? "spend" : "health",
      from,
      until,
      madeAt: Math.max(known?.madeAt ?? 0, file.madeAt),
      files: [...(known?.files ?? []), file],
    });
  }
  return [...reports.values()].toSorted(
    (a, b) =>
      b.until.localeCompare(a.until) ||
      b.from.localeCompare(a.from) ||
      a.kind.localeCompare(b.kind),
  );
}

/** A file of a report; undefined for other names, or if it does not exist. */
export function findReport(
  directory: string,
  name: string,
):
  | (ReportFile & { readonly path: string; readonly madeAt: number })
  | undefined {
  const format = formats[FILE_NAME.exec(name)?.[4] ?? ""];
  if (format === undefined) {
    return undefined;
  }
  const path = join(directory, name);
  const file = statSync(path, { throwIfNoEntry: false });
  if (file?.isFile() !== true) {
    return undefined;
  }
  return { name, format, bytes: file.size, path, madeAt: file.mtimeMs };
}
