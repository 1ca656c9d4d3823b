import { lastLinesOf } from "../last-lines.ts";
import type { KubeApi } from "./kube-api.ts";

const LOGS_TIMEOUT_MS = 10_000;

/**
 * The last lines of a pod's log. With several containers their lines are in the order of writing, each after the name of its
 * container; one that has not started yet is left out. Throws a Failure if no container has a log.
 */
export async function readPodLogs(
  api: KubeApi,
  pod: string,
  containers: readonly string[],
  lines: number,
): Promise<readonly string[]> {
  const [first = ""] = containers;
  if (containers.length <= 1) {
    return lastLinesOf(await readLog(api, pod, first, lines, false), lines);
  }
  const answers = await Promise.allSettled(
    containers.map(async (container) => ({
      container,
      text: await readLog(api, pod, container, lines, true),
    })),
  );
  const read = answers.flatMap((each) =>
    each.status === "fulfilled" ? [each.value] : [],
  );
  const [failed] = answers.filter(({ status }) => status === "rejected");
  if (read.length === 0 && failed?.status === "rejected") {
    throw failed.reason;
  }
  return read
    .flatMap(({ container, text }) =>
      lastLinesOf(text, lines).map((line) => splitLine(container, line)),
    )
    .toSorted((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
    .slice(-lines)
    .map(({ line }) => line);
}

function readLog(
  api: KubeApi,
  pod: string,
  container: string,
  lines: number,
  timestamps: boolean,
): Promise<string> {
  const query = new URLSearchParams({ container, tailLines: String(lines) });
  if (timestamps) {
    query.set("timestamps", "true");
  }
  return api.get(`pods/${pod}/log?${query}`, LOGS_TIMEOUT_MS);
}

/** The kubelet's times have nine digits after the point and the zone of the node: their texts sort like the times. */
function splitLine(container: string, line: string) {
  const space = line.indexOf(" ");
  return {
    at: line.slice(0, space),
    line: `${container}: ${line.slice(space + 1)}`,
  };
}
