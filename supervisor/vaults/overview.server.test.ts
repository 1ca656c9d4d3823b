import { afterAll, beforeAll, expect, test } from "vitest";
import {
  serversUnderTest,
  type ServerUnderTest,
} from "../../test/contract/server-under-test.ts";
import {
  openNotesTestbed,
  type NotesTestbed,
} from "../../test/supervisor/notes-testbed.ts";
import type { Couch } from "./couch.ts";
import { listVaults } from "./overview.ts";

const [embedded] = serversUnderTest() as [ServerUnderTest];
const VAULTS = ["a", "b", "c", "d", "e", "f"];
let testbed: NotesTestbed;

beforeAll(async () => {
  testbed = await openNotesTestbed(embedded);
  for (const vault of VAULTS.toReversed()) {
    await testbed.couch.ask("PUT", `/${vault}`);
  }
});
afterAll(() => testbed.close());

test("a few vaults are read at the same time, and listed in the order of their names", async () => {
  let running = 0;
  let most = 0;
  const couch: Couch = {
    ...testbed.couch,
    find: async (path, options) => {
      running += 1;
      most = Math.max(most, running);
      return testbed.couch.find(path, options).finally(() => (running -= 1));
    },
  };
  const views = await listVaults({ ...testbed, couch });
  expect(views.map(({ vault }) => vault)).toEqual(VAULTS);
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThan(VAULTS.length);
});
