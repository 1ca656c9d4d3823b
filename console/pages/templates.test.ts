import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

test("commands on pages are shown as they are typed on this machine", () => {
  const directory = `${import.meta.dirname}/templates`;
  const bare = readdirSync(directory).filter((file) =>
    readFileSync(`${directory}/${file}`, "utf8").includes("<code>hearth "),
  );
  expect(bare).toEqual([]);
});
