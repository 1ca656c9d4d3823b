import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { temporaryHome } from "../test/supervisor/temporary-home.ts";
import { configSchema } from "./config/schema.ts";
import { openHistory, type History } from "./history/history.ts";
import { createHome } from "./home/home.ts";
import { Supervision } from "./supervision.ts";

let place: ReturnType<typeof temporaryHome>;
let history: History;

beforeEach(() => {
  place = temporaryHome();
  createHome(place.home);
  history = openHistory(place.home.history);
});
afterEach(() => {
  history.close();
  place.remove();
});

/** A supervisor that only watches. */
function openSupervision(settings: object = {}): Supervision {
  return new Supervision({
    home: place.home,
    env: {},
    config: { leftOut: [], config: configSchema.parse(settings) },
    history,
    onCheck: () => {},
    onNotice: () => {},
  });
}

test("alarms about what a supervisor no longer looks at end at its next start", async () => {
  const earlier = openSupervision();
  for (const fingerprint of [
    "job:notes-backup",
    "notes-gone:personal",
    "notes-growth",
    "budget:80:key:1",
    "model:failures:fast",
    "backups-size",
    "offsite-size",
    "backup-copy-key",
    "history-damaged-elsewhere",
  ]) {
    earlier.alerting.raise({
      fingerprint,
      level: "warning",
      subject: fingerprint,
      text: "needs attention",
      command: "hearth status",
    });
  }
  const supervision = openSupervision();
  supervision.start();
  try {
    expect(
      supervision.alerting.active().map(({ fingerprint }) => fingerprint),
    ).toEqual(["history-damaged-elsewhere"]);
  } finally {
    await supervision.rest();
  }
});

test("a finished job updates the check of backups at once, not at its next regular time", async () => {
  const directory = join(place.home.backups, "other");
  const supervision = openSupervision({
    offline: { references: [] },
    checks: [{ name: "backup-other", kind: "backup", directory }],
  });
  const { jobs } = supervision.context;
  jobs.add({
    name: "other-backup",
    description: "Takes a backup.",
    schedule: { cron: null, timeoutMs: 60_000, retries: 0 },
    run: async () => {
      mkdirSync(directory, { recursive: true });
      writeFileSync(join(directory, "tuesday.tar"), "notes");
      return { status: "done", summary: "taken" };
    },
  });
  const result = () => supervision.status().checks[0]?.latest?.text;
  supervision.start();
  try {
    await vi.waitFor(() => expect(result()).toContain("no backup yet"));
    jobs.run("other-backup");
    await vi.waitFor(() => expect(result()).toContain("tuesday.tar"));
  } finally {
    await supervision.rest();
  }
});
