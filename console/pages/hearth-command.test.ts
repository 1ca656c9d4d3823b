import { expect, test } from "vitest";
import { hearthCommand } from "./hearth-command.ts";

test.each([
  [{}, "npx hearth"],
  [{ HEARTH_RUNTIME: "docker" }, "docker exec -it hearth-supervisor hearth"],
  [
    { HEARTH_RUNTIME: "docker", HEARTH_CONTAINER_PREFIX: "trial" },
    "docker exec -it trial-supervisor hearth",
  ],
  [
    { HEARTH_RUNTIME: "kubernetes", HOSTNAME: "trial-hearth-supervisor-0" },
    "kubectl exec -it trial-hearth-supervisor-0 -- hearth",
  ],
])("with %j, commands reach this supervisor: %s", (env, command) => {
  expect(hearthCommand(env)).toBe(command);
});
