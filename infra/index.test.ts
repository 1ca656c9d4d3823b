import { runtime } from "@pulumi/pulumi";
import { expect, test } from "vitest";
import { validConfig } from "../test/infra/stack-config.ts";
import { secretFields } from "./config/config-schema.ts";
import { programOutsideRotations } from "./index.ts";

test("a plain pulumi command is rejected during a rotation", async () => {
  const config = {
    ...validConfig,
    rotation: JSON.stringify({ of: "redis", settings: {}, old: "" }),
  };
  runtime.setAllConfig(
    Object.fromEntries(
      Object.entries(config).map(([key, value]) => [`hearth:${key}`, value]),
    ),
    secretFields.map((key) => `hearth:${key}`),
  );
  await expect(programOutsideRotations()).rejects.toThrow(
    "a rotation is unfinished; nothing was changed: `npm run deploy -- doctor` names the command that completes it.",
  );
});
