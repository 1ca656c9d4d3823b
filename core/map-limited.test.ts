import { expect, test } from "vitest";
import { mapLimited } from "./map-limited.ts";

/** Work whose calls end on demand. */
function openWork() {
  const started: number[] = [];
  const calls = new Map<number, PromiseWithResolvers<string>>();
  return {
    started,
    work: (item: number) => {
      started.push(item);
      const call = Promise.withResolvers<string>();
      calls.set(item, call);
      return call.promise;
    },
    end: (item: number) => calls.get(item)?.resolve(`done ${item}`),
    fail: (item: number) => calls.get(item)?.reject(new Error(`no ${item}`)),
  };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("at most the limit is in progress, and results have the order of the items", async () => {
  const { started, work, end } = openWork();
  const all = mapLimited([1, 2, 3], 2, work);
  expect(started).toEqual([1, 2]);
  end(2);
  await settled();
  expect(started).toEqual([1, 2, 3]);
  end(3);
  end(1);
  expect(await all).toEqual(["done 1", "done 2", "done 3"]);
  expect(await mapLimited([], 2, work)).toEqual([]);
});

test("after a failure nothing else starts", async () => {
  const { started, work, end, fail } = openWork();
  const all = mapLimited([1, 2, 3, 4], 2, work);
  fail(1);
  await expect(all).rejects.toThrow("no 1");
  end(2);
  await settled();
  expect(started).toEqual([1, 2]);
});
