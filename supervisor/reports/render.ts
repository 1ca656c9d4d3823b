import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { Failure } from "../../core/failure.ts";
import { renderCsv } from "./csv.ts";
import type { Report, ReportFormat } from "./report.ts";
import { renderText } from "./text.ts";

const program = fileURLToPath(new URL("render-main.ts", import.meta.url));

/** A report in one of its forms. */
export async function renderReport(
  report: Report,
  format: ReportFormat,
  signal: AbortSignal,
): Promise<string> {
  switch (format) {
    case "text":
      return renderText(report);
    case "json":
      return `${JSON.stringify(report, null, 1)}\n`;
    case "csv":
      return renderCsv(report);
    case "html":
      return renderHtml(report, signal);
  }
}

async function renderHtml(
  report: Report,
  signal: AbortSignal,
): Promise<string> {
  const child = spawn(process.execPath, [program], {
    env: {
      PATH: process.env["PATH"] ?? "",
      ...(process.env["NODE_COMPILE_CACHE"] === undefined
        ? {}
        : { NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"] }),
    },
    stdio: ["pipe", "pipe", "pipe"],
    signal,
  });
  // It may end before it has read all; its exit tells why.
  child.stdin.on("error", () => {});
  child.stdin.end(JSON.stringify(report));
  const exit = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const [html, said, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    exit,
  ]);
  if (code !== 0) {
    throw new Failure(
      `the page of the report could not be drawn (${said.trim().split("\n").at(-1) ?? "no reason known"}): take --format text meanwhile.`,
    );
  }
  return html;
}
