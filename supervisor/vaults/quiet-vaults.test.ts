import { expect, test } from "vitest";
import { openQuietVaults } from "./quiet-vaults.ts";

test("a vault that was read is quiet until it changes, ten minutes have passed, or the feed is interrupted", () => {
  let now = 0;
  const quiet = openQuietVaults(() => now);
  const readAll = () => {
    const skipped = [...quiet.take()];
    quiet.read(["a", "b"]);
    return skipped;
  };
  expect(readAll()).toEqual([]);
  // Without the feed nothing is known.
  expect(readAll()).toEqual([]);
  quiet.connected();
  expect(readAll()).toEqual([]);
  expect(readAll()).toEqual(["a", "b"]);
  quiet.changed("a");
  expect(readAll()).toEqual(["b"]);
  expect(readAll()).toEqual(["a", "b"]);
  now = 600_000;
  expect(readAll()).toEqual([]);
  expect(readAll()).toEqual(["a", "b"]);
  quiet.lost();
  expect(readAll()).toEqual([]);
  quiet.connected();
  expect(readAll()).toEqual([]);
  expect(readAll()).toEqual(["a", "b"]);
});

test("changes during a read, or missed ones, are read next time", () => {
  const quiet = openQuietVaults(() => 0);
  quiet.connected();
  quiet.take();
  quiet.changed("a");
  quiet.read(["a", "b"]);
  expect([...quiet.take()]).toEqual(["b"]);
  quiet.lost();
  quiet.connected();
  quiet.read(["a", "b"]);
  expect([...quiet.take()]).toEqual([]);
});
