import {
  problemAt,
  unknownSetting,
  type Reading,
} from "../../core/config/reading.ts";
import {
  isEmpty,
  type Entry,
  type Mapping,
  type Tree,
} from "../../core/config/tree.ts";

type Shape = "list" | "mapping";

/** Sections of a configuration file: lists of named entries, and mappings of settings. */
export const SECTIONS: Readonly<Record<string, Shape>> = {
  restarts: "mapping",
  checks: "list",
  maintenance: "list",
  offline: "mapping",
  jobs: "mapping",
  backups: "mapping",
  notes: "mapping",
  notify: "list",
  usage_alerts: "mapping",
  sign_in: "list",
  watchdog: "mapping",
  peer: "mapping",
};

/** The sections of one file; empty ones count as absent. Keys that are not sections or have the wrong shape become problems. */
export function readSections(reading: Reading): Mapping {
  const { root, problems } = reading;
  const entries = new Map<string, Entry>();
  for (const [name, entry] of root.entries) {
    const shape = Object.hasOwn(SECTIONS, name) ? SECTIONS[name] : undefined;
    if (shape === undefined) {
      problems.push(unknownSetting(reading, [name], Object.keys(SECTIONS)));
    } else if (shapeOf(entry.node) === shape) {
      entries.set(name, entry);
    } else if (!isEmpty(entry.node)) {
      problems.push(problemAt(reading, [name], `must be a ${shape}`));
    }
  }
  return { ...root, entries };
}

function shapeOf({ kind }: Tree): Shape | undefined {
  switch (kind) {
    case "list":
      return "list";
    case "map":
      return "mapping";
    case "scalar":
      return undefined;
  }
}
