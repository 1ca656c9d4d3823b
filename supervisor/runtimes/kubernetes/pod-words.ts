import { ago } from "../../../core/words.ts";
import type { PodFacts } from "../runtime.ts";

/** A pod in words, the same in the CLI and on pages. `now` is in milliseconds since 1970. */
export function describePod(
  { node, containers, lastEnd }: PodFacts,
  now: number,
) {
  const ready = containers.filter(({ isReady }) => isReady).length;
  return {
    /** Ready containers, such as "1/2". */
    ready: `${ready}/${containers.length}`,
    node: node ?? "not scheduled",
    images: containers.map(({ image }) => shortened(image)),
    /** Empty if no container was restarted. */
    lastEnd: lastEnd === null ? "" : `${lastEnd.text}, ${ago(lastEnd.at, now)}`,
  };
}

/** Without the registry, and of a digest the first twelve digits. */
function shortened(image: string): string {
  const name = image.split("/").at(-1) ?? image;
  return name.replace(/(@sha256:[0-9a-f]{12})[0-9a-f]+$/, "$1…");
}
