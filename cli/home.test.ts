import { expect, test } from "vitest";
import { defaultHomeRoot } from "../supervisor/home/home-root.js";
import { sentencesAfterMove } from "./home.ts";

const env = { XDG_DATA_HOME: "/data" };
const usual = defaultHomeRoot(env);
const from = (root: string) => ({ root, checkout: "/src/hearth" });
const left = (
  root: string,
  to: string,
  more: Readonly<Record<string, string>> = {},
) =>
  sentencesAfterMove(from(root), { root: to }, { ...env, ...more }).join("\n");

test("after a move out of the checkout only its settings files are left there", () => {
  const said = left("/src/hearth/.hearth", usual);
  expect(said).toContain(`Moved /src/hearth/.hearth to ${usual}.`);
  expect(said).toContain("config/*.local.yaml");
  expect(said).not.toContain("HEARTH_HOME");
});

test("HEARTH_HOME is to be set for another place than the default, and unset for the default", () => {
  expect(left(usual, "/mnt/hearth")).toContain(
    "Set HEARTH_HOME=/mnt/hearth for each command",
  );
  const back = left("/mnt/hearth", usual, {
    HEARTH_HOME: "/mnt/hearth",
  });
  expect(back).toContain("Unset HEARTH_HOME, which is still /mnt/hearth");
  expect(back).not.toContain("config/*.local.yaml");
});
