import { expect, onTestFinished, test } from "vitest";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { makeIdentity } from "./age.ts";
import { findOffsite, noTarget, openOffsite } from "./settings.ts";

test.each([
  [{}, "hearth offsite setup REMOTE:PATH"],
  [
    { HEARTH_RUNTIME: "docker" },
    "npx pulumi config set hearth:offsiteTarget REMOTE:PATH",
  ],
  [
    { HEARTH_RUNTIME: "kubernetes", HEARTH_STACK: "grown" },
    "npx pulumi config set --stack grown hearth:offsiteTarget REMOTE:PATH",
  ],
  [
    { HEARTH_RUNTIME: "kubernetes" },
    "helm upgrade --set offsite.target=REMOTE:PATH …",
  ],
])("with %j, the target is set by %s", (env, command) => {
  expect(noTarget(env)).toBe(
    `no off-site target is configured: run \`${command}\` (docs/off-site.md).`,
  );
});

test.each([
  ["folder/x", '"folder/x"'],
  ["--config:backups", '"--config:backups"'],
  [":webdav,pass=secret:backups", '":webdav,…"'],
])("a target %s of the environment is rejected", async (target, shown) => {
  const { home, remove } = temporaryHome();
  onTestFinished(remove);
  const env = {
    OFFSITE_TARGET: target,
    OFFSITE_IDENTITY: await makeIdentity(),
  };
  const settings = findOffsite(home, env);
  if (settings === undefined) {
    throw new Error("no target was found");
  }
  await expect(openOffsite(home, env, settings, "copy")).rejects.toThrow(
    `${shown} is not a valid target: it must be REMOTE:PATH`,
  );
});
