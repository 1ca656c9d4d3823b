import { expect, test } from "vitest";
import { defaultHomeRoot } from "../supervisor/home/home-root.js";
import { sentencesAfterMove } from "./home.ts";

const env = { XDG_DATA_HOME: "/data" };
const standard = defaultHomeRoot(env);
const left = (
  root: string,
  to: string,
  {
    settings = [],
    ...more
  }: { readonly settings?: string[]; readonly HEARTH_HOME?: string } = {},
) =>
  sentencesAfterMove({ root }, { root: to }, settings, {
    ...env,
    ...more,
  }).join("\n");

test("settings that remain in the checkout are named", () => {
  const root = "/src/hearth/.hearth";
  const text = left(root, standard, {
    settings: ["config/gateway.local.yaml"],
  });
  expect(text).toContain(`Moved ${root} to ${standard}.`);
  expect(text).toContain("config/gateway.local.yaml");
  expect(text).not.toContain("HEARTH_HOME");
  expect(left(root, standard)).not.toContain("Settings");
});

test("HEARTH_HOME must be set for a non-default directory, and unset for the default one", () => {
  expect(left(standard, "/mnt/hearth")).toContain(
    "Set HEARTH_HOME=/mnt/hearth for every command",
  );
  const back = left("/mnt/hearth", standard, {
    HEARTH_HOME: "/mnt/hearth",
  });
  expect(back).toContain("Unset HEARTH_HOME, which is still /mnt/hearth");
});
