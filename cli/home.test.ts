import { expect, test } from "vitest";
import { defaultHomeRoot } from "../supervisor/home/home-root.js";
import { sentencesAfterMove } from "./home.ts";

const env = { XDG_DATA_HOME: "/data" };
const standard = defaultHomeRoot(env);
const from = (root: string) => ({ root, checkout: "/src/hearth" });
const left = (
  root: string,
  to: string,
  more: Readonly<Record<string, string>> = {},
) =>
  sentencesAfterMove(from(root), { root: to }, { ...env, ...more }).join("\n");

test("after a move out of the checkout only its settings files remain there", () => {
  const text = left("/src/hearth/.hearth", standard);
  expect(text).toContain(`Moved /src/hearth/.hearth to ${standard}.`);
  expect(text).toContain("config/*.local.yaml");
  expect(text).not.toContain("HEARTH_HOME");
});

test("HEARTH_HOME must be set for a non-default directory, and unset for the default one", () => {
  expect(left(standard, "/mnt/hearth")).toContain(
    "Set HEARTH_HOME=/mnt/hearth for every command",
  );
  const back = left("/mnt/hearth", standard, {
    HEARTH_HOME: "/mnt/hearth",
  });
  expect(back).toContain("Unset HEARTH_HOME, which is still /mnt/hearth");
  expect(back).not.toContain("config/*.local.yaml");
});
