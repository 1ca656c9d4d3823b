type Fate = "brought" | "known" | "left";

/** Counts of one kind: found, imported, already present, left out. */
export interface Tally {
  readonly kind: string;
  readonly there: number;
  readonly brought: number;
  readonly known: number;
  readonly left: number;
}

/** Something that was not imported, or imported with a difference; equal remarks are reported once. */
export interface Remark {
  readonly kind: "left" | "changed";
  readonly text: string;
  readonly count: number;
  /** The first few that it is about. */
  readonly examples: readonly string[];
}

/** Collects the report of the import. */
export interface Notes {
  /** Counts one of a kind, or several. */
  count(kind: string, what: Fate, times?: number): void;
  /** Not imported, and why. */
  left(kind: string, name: string, why: string): void;
  /** Imported with a difference. */
  changed(kind: string, name: string, what: string): void;
  tallies(): readonly Tally[];
  remarks(): readonly Remark[];
}

const MAX_EXAMPLES = 5;

export function createNotes(): Notes {
  const tallies = new Map<
    string,
    { brought: number; known: number; left: number }
  >();
  const remarks = new Map<
    string,
    { kind: Remark["kind"]; text: string; count: number; examples: string[] }
  >();

  function count(kind: string, what: Fate, times = 1): void {
    const tally = tallies.get(kind) ?? { brought: 0, known: 0, left: 0 };
    tally[what] += times;
    tallies.set(kind, tally);
  }

  function remark(
    kind: Remark["kind"],
    of: string,
    name: string,
    what: string,
  ) {
    const text = `${of}: ${what}`;
    const known = remarks.get(`${kind} ${text}`) ?? {
      kind,
      text,
      count: 0,
      examples: [],
    };
    known.count++;
    if (known.examples.length < MAX_EXAMPLES) {
      known.examples.push(name);
    }
    remarks.set(`${kind} ${text}`, known);
  }

  return {
    count,
    left(kind, name, why) {
      count(kind, "left");
      remark("left", kind, name, why);
    },
    changed: (kind, name, what) => remark("changed", kind, name, what),
    tallies: () =>
      [...tallies].map(([kind, { brought, known, left }]) => ({
        kind,
        there: brought + known + left,
        brought,
        known,
        left,
      })),
    remarks: () => [...remarks.values()],
  };
}
