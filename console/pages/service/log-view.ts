import { readLogLine } from "./log-lines.ts";
import type { ServiceFacts } from "./service-facts.ts";

/** The log in lines with times, or why there is none. */
export function viewOutput({ output, timeZone }: ServiceFacts) {
  return output.kind === "none"
    ? output
    : {
        ...output,
        lines: output.lines.map((line) => readLogLine(line, timeZone)),
      };
}

/** The form of the filter, and the link that starts or stops following. */
export function viewLogChoice({ logs, span }: ServiceFacts, path: string) {
  const { filter, follow } = logs;
  const query = new URLSearchParams({
    ...(span === "day" ? {} : { span }),
    ...(filter === "" ? {} : { filter }),
    ...(follow ? {} : { follow: "on" }),
  });
  return { filter, follow, span, other: `${path}?${query.toString()}#logs` };
}
