import { paint, print, printJsonLine } from "./terminal.ts";

/** The latest lines of one log, under its name if there are several. */
export function printLatest(
  names: readonly string[],
  service: string,
  lines: readonly string[],
  json: boolean,
): void {
  if (json) {
    lines.forEach((line) => printJsonLine({ service, line }));
    return;
  }
  if (names.length > 1) {
    print(paint("strong", `── ${service} ──`));
  }
  lines.forEach(print);
}

/** Prints one line that was added to a log, after the name of the log if there are several. */
export function addedLinePrinter(
  names: readonly string[],
  json: boolean,
): (service: string, line: string) => void {
  if (json) {
    return (service, line) => printJsonLine({ service, line });
  }
  const wide = Math.max(...names.map((name) => name.length));
  return (service, line) => {
    const lead =
      names.length > 1 ? `${paint("soft", service.padEnd(wide))}  ` : "";
    print(`${lead}${line}`);
  };
}
