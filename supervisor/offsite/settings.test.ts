import { expect, test } from "vitest";
import { noTarget } from "./settings.ts";

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
