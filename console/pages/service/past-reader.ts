import {
  checkRecord,
  checkSteps,
} from "../../../supervisor/checks/check-reports.ts";
import type { History } from "../../../supervisor/history/history.ts";
import type { Known, Past } from "./service-view.ts";
import { spans, type Span, type SpanName } from "./spans.ts";

const HOUR_MS = 3_600_000;
/** What is read from the history file is kept so long: many open tabs cost no more than one. */
const KEEP_MS = 10_000;
const SHOWN_ENTRIES = 40;

/** Reads how services did, and keeps it for some seconds. */
export class PastReader {
  readonly #history: History;
  readonly #kept = new Map<
    string,
    { readonly at: number; readonly past: Past }
  >();

  constructor(history: History) {
    this.#history = history;
  }

  read(name: string, known: Known, span: SpanName): Past {
    const now = Date.now();
    const key = `${name} ${span}`;
    const kept = this.#kept.get(key);
    if (kept !== undefined && now - kept.at < KEEP_MS) {
      return kept.past;
    }
    const past = this.#readNow(name, known, span, now);
    this.#kept.set(key, { at: now, past });
    return past;
  }

  /** What was just done to it is read anew. */
  forget(name: string): void {
    for (const key of this.#kept.keys()) {
      if (key.startsWith(`${name} `)) {
        this.#kept.delete(key);
      }
    }
  }

  #readNow(
    name: string,
    { check, service }: Known,
    span: SpanName,
    now: number,
  ): Past {
    const { db } = this.#history;
    const record = ({ hours, steps }: Span) =>
      checkRecord(db, name, now - hours * steps * HOUR_MS, now);
    const names = new Set([
      name,
      ...(service === undefined ? [] : [service.name]),
    ]);
    return {
      records: {
        day: record(spans.day),
        week: record(spans.week),
        month: record(spans.month),
      },
      steps: check === undefined ? [] : checkSteps(db, name, now, spans[span]),
      entries: [...names]
        .flatMap((each) => this.#history.latest(SHOWN_ENTRIES, each))
        .toSorted((a, b) => b.at - a.at)
        .slice(0, SHOWN_ENTRIES),
    };
  }
}
