import { HOUR_MS } from "../../../core/duration.ts";
import {
  checkRecord,
  checkSteps,
} from "../../../supervisor/checks/check-reports.ts";
import { historyByIncident } from "../../../supervisor/checks/incident-history.ts";
import { incidents } from "../../../supervisor/checks/incidents.ts";
import type { History } from "../../../supervisor/history/history.ts";
import type { Known, Past } from "./service-facts.ts";
import { spans, type Span, type SpanName } from "./spans.ts";

/** Results from the history file are cached: many open tabs cost no more than one. */
const CACHE_MS = 10_000;
const SHOWN_ENTRIES = 40;

/** Reads uptime, latency and history of services, cached for some seconds. */
export class PastReader {
  readonly #history: History;
  readonly #cached = new Map<
    string,
    { readonly at: number; readonly past: Past }
  >();

  constructor(history: History) {
    this.#history = history;
  }

  read(name: string, known: Known, span: SpanName): Past {
    const now = Date.now();
    const key = `${name} ${span}`;
    const cached = this.#cached.get(key);
    if (cached !== undefined && now - cached.at < CACHE_MS) {
      return cached.past;
    }
    const past = this.#readNow(name, known, span, now);
    this.#cached.set(key, { at: now, past });
    return past;
  }

  /** Drops the cached results of a service after an action. */
  forget(name: string): void {
    for (const key of this.#cached.keys()) {
      if (key.startsWith(`${name} `)) {
        this.#cached.delete(key);
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
    const names = [
      ...new Set([name, ...(service === undefined ? [] : [service.name])]),
    ];
    return {
      records: {
        day: record(spans.day),
        week: record(spans.week),
        month: record(spans.month),
      },
      incidents: incidents(
        db,
        now - spans.month.hours * spans.month.steps * HOUR_MS,
        now,
        names,
      ),
      steps: check === undefined ? [] : checkSteps(db, name, now, spans[span]),
      entries: names
        .flatMap((each) =>
          historyByIncident(this.#history, now, SHOWN_ENTRIES, each),
        )
        // They have a list of their own.
        .filter((row) => row.kind !== "incident")
        .toSorted((a, b) => b.at - a.at)
        .slice(0, SHOWN_ENTRIES),
    };
  }
}
