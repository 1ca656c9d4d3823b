type Fate = "brought" | "known" | "left";

/** What there was of one kind, and what became of it. */
export interface Tally {
  readonly kind: string;
  readonly there: number;
  readonly brought: number;
  readonly known: number;
  readonly left: number;
}

/** Something that was left behind, or brought with a difference; alike ones are told once. */
export interface Remark {
  readonly kind: "left" | "changed";
  readonly text: string;
  readonly count: number;
  /** The first few that it is about. */
  readonly examples: readonly string[];
}

/** Gathers what the import tells at its end. */
export interface Notes {
  /** Counts one of a kind, or several. */
  count(kind: string, what: Fate, times?: number): void;
  /** Not brought, and why. */
  left(kind: string, name: string, why: string): void;
  /** Brought, but not all of it. */
  changed(kind: string, name: string, what: string): void;
  tallies(): readonly Tally[];
  remarks(): readonly Remark[];
}

const MOST_EXAMPLES = 5;

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
    if (known.examples.length < MOST_EXAMPLES) {
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
