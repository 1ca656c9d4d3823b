import { beforeEach, expect, test } from "vitest";
import { temporaryHistory } from "../../test/supervisor/temporary-history.ts";
import { openJobHistory } from "../jobs/job-history.ts";
import { actAs, byAuthor, withAuthor } from "./author.ts";
import type { History } from "./history.ts";
import { listPersonalActs } from "./personal-acts.ts";

let history: History;
let now: number;
const ANNA = "anna@example.org (home)";

beforeEach(() => {
  now = 1000;
  history = temporaryHistory(() => now);
});

/** Acts of the operator and of a person, among events that nobody caused. */
function record(): void {
  history.checkChanged("site", "up", "down", "no answer by the server (502)");
  actAs(ANNA, () => {
    history.act("site", "asked", withAuthor("silenced for 2 h"));
    now += 1;
    history.checkChanged("site", "down", "paused", `paused ${byAuthor()}`);
  });
  now += 1;
  history.act("notes", "asked", withAuthor("vault created (notes)."));
  history.act("gateway", "restart", "restarted after it ended");
  openJobHistory(history.db, () => {}).recordStart({
    job: "backup",
    due: null,
    caughtUp: false,
    startedAt: now,
    askedBy: ANNA,
  });
  now += 1;
  history.checkChanged("site", "paused", "up", withAuthor("resumed"));
}

test("lists what people did with their names, newest first, and nothing else", () => {
  record();
  const acts = listPersonalActs(history.db, {}, 10);
  expect(acts.map(({ author, name, text }) => [author, name, text])).toEqual([
    ["operator", "site", "up: resumed"],
    [ANNA, "job backup", "run 1 started"],
    ["operator", "notes", "vault created (notes)."],
    [ANNA, "site", `paused: paused by ${ANNA}`],
    [ANNA, "site", `silenced for 2 h, by ${ANNA}`],
  ]);
});

test("pages by the place of the last one, also where several happened at once", () => {
  record();
  const all = listPersonalActs(history.db, {}, 10);
  const paged = [];
  let before: string | undefined;
  for (;;) {
    const [next] = listPersonalActs(
      history.db,
      before === undefined ? {} : { before },
      1,
    );
    if (next === undefined) {
      break;
    }
    paged.push(next);
    before = next.cursor;
  }
  expect(paged).toEqual(all);
});

test.each([
  [{ author: "ANNA@" }, 3],
  [{ author: "operator" }, 2],
  [{ name: "job" }, 1],
  [{ author: "operator", name: "site" }, 1],
  [{ from: 1002, until: 1003 }, 2],
  [{ before: "nonsense" }, 5],
])("filters %j", (filter, count) => {
  record();
  expect(listPersonalActs(history.db, filter, 10)).toHaveLength(count);
});
