import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { ASKED_BY_COLUMN, JOB_TABLES, openJobHistory } from "./job-history.ts";

test("a run that cannot be written can be followed by those who asked for it", () => {
  const db = new DatabaseSync(":memory:");
  db.exec(`${JOB_TABLES};${ASKED_BY_COLUMN}`);
  // As on a disk that is read-only after an error.
  db.exec("PRAGMA query_only = ON");
  const troubles: string[] = [];
  const history = openJobHistory(db, (sentence) => troubles.push(sentence));
  const run = {
    job: "postgres-backup",
    due: null,
    askedBy: null,
    caughtUp: false,
    startedAt: 1000,
  };
  const id = history.recordStart(run);
  expect(history.run(id)).toMatchObject({ ...run, id, status: "running" });
  const end = {
    endedAt: 2000,
    status: "failed",
    attempts: 1,
    text: "the file system is read-only.",
    details: null,
  } as const;
  history.end(id, end);
  expect(history.run(id)).toEqual({ ...run, id, ...end });
  expect(troubles[0]).toContain("cannot write the history of jobs");
  const later = Array.from({ length: 100 }, () => history.recordStart(run));
  expect(new Set(later).size).toBe(100);
  expect(history.run(id)).toBeUndefined();
  expect(history.run(later.at(-1)!)?.status).toBe("running");
});
