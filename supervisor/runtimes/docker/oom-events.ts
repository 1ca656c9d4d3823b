import { z } from "zod";
import type { Engine } from "./engine.ts";

interface Run {
  /** Name and id of the container. */
  readonly name: string;
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly since: number;
  readonly until: number;
}

const event = z.object({
  Action: z.string(),
  Actor: z.object({ ID: z.string() }),
});

/**
 * Whether the kernel killed a process of the container for lack of memory during that run. False if the engine does not list it:
 * it keeps its latest 256 events, and a socket proxy of an earlier release denies all of them. Never throws.
 */
export async function hadOomEvent(
  engine: Engine,
  run: Run,
  withinMs: number,
): Promise<boolean> {
  try {
    const { status, body } = await engine.ask("GET", pathOf(run), withinMs);
    return status === 200 && listsOom(body.toString("utf8"), run.id);
  } catch {
    return false;
  }
}

/** The socket proxy permits exactly this form; as `until` is in the past, the engine's answer ends. */
function pathOf({ name, since, until }: Run): string {
  const filters = JSON.stringify({ container: [name], event: ["oom"] });
  return `/events?since=${inSeconds(since)}&until=${inSeconds(until)}&filters=${encodeURIComponent(filters)}`;
}

function inSeconds(ms: number): string {
  return (ms / 1000).toFixed(3);
}

/** One JSON object a line; Docker's filter also matches containers whose names start with this one's. */
function listsOom(lines: string, id: string): boolean {
  return lines
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => event.parse(JSON.parse(line)))
    .some(({ Action, Actor }) => Action === "oom" && Actor.ID === id);
}
