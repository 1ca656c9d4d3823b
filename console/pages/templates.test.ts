import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const directory = `${import.meta.dirname}/templates`;

function templatesWith(text: string): readonly string[] {
  return readdirSync(directory).filter((file) =>
    readFileSync(`${directory}/${file}`, "utf8").includes(text),
  );
}

test("commands on pages are shown as they are typed on this machine", () => {
  expect(templatesWith("<code>hearth ")).toEqual([]);
});

test("no page assumes the address of the gateway", () => {
  expect(templatesWith("127.0.0.1:4000")).toEqual([]);
});
