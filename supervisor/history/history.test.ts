import {
  mkdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import {
  afterAll,
  afterEach,
  beforeEach,
  describe,
  expect,
  test,
} from "vitest";
import { createSmallDisk } from "../../test/servers/small-disk.ts";
import type { Alarm } from "../alerts/alarm.ts";
import { openDamagedHistoryModule } from "./damaged-history.ts";
import { openHistory, tolerateFullDisk } from "./history.ts";
import { damagedFiles } from "./sqlite-file.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { alarmsIn } from "../../test/supervisor/raised-alarms.ts";

let place: ReturnType<typeof temporaryHome>;

beforeEach(() => {
  place = temporaryHome();
});
afterEach(() => place.remove());

test("events persist after closing and reopening the file, newest first", () => {
  const path = join(place.directory, "history.db");
  let now = 1000;
  const first = openHistory(path, () => (now += 1));
  first.act("gateway", "start", "hearth up");
  first.serviceChanged("gateway", "starting", "running", null);
  first.checkChanged("gateway", "up", "down", "answered 500");
  first.close();
  const second = openHistory(path);
  expect(second.latest(2)).toEqual([
    {
      at: 1003,
      kind: "check",
      name: "gateway",
      from: "up",
      to: "down",
      reason: "answered 500",
    },
    {
      at: 1002,
      kind: "service",
      name: "gateway",
      from: "starting",
      to: "running",
      reason: null,
    },
  ]);
  second.close();
});

test("restarts are counted since the last start by a person", () => {
  let now = 0;
  const history = openHistory(
    join(place.directory, "history.db"),
    () => (now += 1),
  );
  history.act("gateway", "restart", "ended");
  history.act("gateway", "start", "hearth up");
  history.act("gateway", "restart", "ended");
  history.act("notes", "restart-asked", "requested");
  history.act("gateway", "adopt", "healthy");
  history.act("gateway", "restart", "ended");
  expect(history.restartsOf("gateway")).toEqual([3, 6]);
  history.act("gateway", "restart-asked", "requested");
  expect(history.restartsOf("gateway")).toEqual([]);
  history.close();
});

const DISK_MB = 16;
const disk = createSmallDisk(DISK_MB);

describe.skipIf(disk === undefined)("on a full disk", () => {
  const path = join(disk?.path ?? "", "history.db");
  const say = (sentence: string) => expect.fail(sentence);
  afterAll(() => disk?.remove());

  test("the history is written into its reserved space", () => {
    const history = tolerateFullDisk(openHistory(path), say);
    disk?.fill();
    for (let count = 0; count < 2000; count += 1) {
      history.act(`service ${count}`, "alarm", "x".repeat(1000));
    }
    expect(history.latest(3000)).toHaveLength(2000);
    disk?.free();
    history.close();
  });

  test("a start reads the existing history and writes when there is space again", () => {
    disk?.fill();
    const notices: string[] = [];
    const history = tolerateFullDisk(openHistory(path), (sentence) =>
      notices.push(sentence),
    );
    expect(history.latest(3000)).toHaveLength(2000);
    // More than the disk holds: the log of the other test, deleted after it, may leave its room only now.
    history.act("gateway", "restart", "y".repeat(DISK_MB * 1024 * 1024));
    expect(notices).toEqual([
      expect.stringMatching(/^cannot write the history: .*full/),
    ]);
    disk?.free();
    history.act("gateway", "restart", "it ended");
    expect(history.latest(1)).toMatchObject([{ reason: "it ended" }]);
    history.close();
  });
});

test("a history that cannot be written is reported, and the supervisor continues", () => {
  const notices: string[] = [];
  const history = openHistory(join(place.directory, "history.db"));
  const quiet = tolerateFullDisk(history, (sentence) => notices.push(sentence));
  history.close();
  quiet.act("gateway", "start", "hearth up");
  expect(notices).toEqual([
    expect.stringMatching(/^cannot write the history: /),
  ]);
});

const DAMAGES: readonly (readonly [string, (path: string) => void])[] = [
  ["overwritten", (path) => writeFileSync(path, "not a database".repeat(500))],
  ["empty", (path) => writeFileSync(path, "")],
  ["cut off", (path) => truncateSync(path, 8192)],
  [
    "overwritten in part",
    (path) => {
      const bytes = readFileSync(path);
      writeFileSync(path, bytes.fill(0x5a, 4096, 3 * 4096));
    },
  ],
  [
    "without a table",
    (path) => {
      const db = new DatabaseSync(path);
      db.exec("DROP TABLE job_runs");
      db.close();
    },
  ],
  [
    "of another shape",
    (path) => {
      const db = new DatabaseSync(path);
      db.exec("PRAGMA user_version = 0");
      db.close();
    },
  ],
  [
    "a directory",
    (path) => {
      rmSync(path);
      mkdirSync(path);
    },
  ],
];

test.each(DAMAGES)(
  "a history file that is %s is renamed, reported and replaced",
  (_, damage) => {
    const path = join(place.directory, "history.db");
    const first = openHistory(path);
    for (let count = 0; count < 200; count += 1) {
      first.act("gateway", "start", "hearth up ".repeat(50));
    }
    first.close();
    damage(path);
    const notices: string[] = [];
    const second = openHistory(
      path,
      () => 0,
      (sentence) => notices.push(sentence),
    );
    second.act("notes", "start", "hearth up");
    expect(second.latest(2)).toMatchObject([{ name: "notes", to: "start" }]);
    second.close();
    const aside = `${path}.damaged-19700101T000000Z`;
    expect(damagedFiles(path)).toEqual([aside]);
    expect(notices).toEqual([
      expect.stringMatching(/was damaged \(.+\): moved to /),
    ]);
    expect(notices[0]).toContain(aside);
    openHistory(path, Date.now, (sentence) => notices.push(sentence)).close();
    expect(notices).toHaveLength(1);
  },
);

test("two damaged files of the same second are both kept", () => {
  const path = join(place.directory, "history.db");
  for (const content of ["one", "two"]) {
    writeFileSync(path, content);
    openHistory(path, () => 0).close();
  }
  expect(
    damagedFiles(path).map((aside) => readFileSync(aside, "utf8")),
  ).toEqual(["one", "two"]);
});

test("a history file that another program has locked is an error, and stays in its place", () => {
  const path = join(place.directory, "history.db");
  openHistory(path).close();
  const other = new DatabaseSync(path);
  other.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  expect(() => openHistory(path)).toThrow("database is locked");
  other.close();
  expect(damagedFiles(path)).toEqual([]);
});

test("a history file of a newer release is opened unchanged", () => {
  const path = join(place.directory, "history.db");
  openHistory(path).close();
  const newer = new DatabaseSync(path);
  newer.exec("PRAGMA user_version = 99; CREATE TABLE added (id INTEGER)");
  newer.close();
  openHistory(path).close();
  expect(damagedFiles(path)).toEqual([]);
});

test("a damaged history is reported until the renamed file is deleted", async () => {
  const home = { ...place.home, history: join(place.directory, "history.db") };
  writeFileSync(home.history, "damaged");
  openHistory(home.history).close();
  const raised = new Map<string, Alarm>();
  const alarms = alarmsIn(raised);
  const report = async () => {
    const room = openDamagedHistoryModule({ home, alarms });
    room.start();
    await room.stop();
    return [...raised.values()];
  };
  const [aside = ""] = damagedFiles(home.history);
  expect(await report()).toMatchObject([
    { level: "warning", subject: "history", command: `rm -r ${aside}*` },
  ]);
  rmSync(aside);
  expect(await report()).toEqual([]);
});
