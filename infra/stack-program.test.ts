import { runtime } from "@pulumi/pulumi";
import { expect, test } from "vitest";
import { minimalKubernetesConfig } from "../test/infra/kubernetes-config.ts";
import { validConfig } from "../test/infra/stack-config.ts";
import { secretFields } from "./config/config-schema.ts";
import { stackProgram } from "./stack-program.ts";

test.each([
  ["two hosts", validConfig],
  ["Kubernetes", minimalKubernetesConfig],
])(
  "a plain pulumi command on %s is rejected during a rotation",
  async (_kind, settings) => {
    const config = {
      ...settings,
      rotation: JSON.stringify({ of: "master", settings: {}, old: "" }),
    };
    runtime.setAllConfig(
      Object.fromEntries(
        Object.entries(config).map(([key, value]) => [`hearth:${key}`, value]),
      ),
      secretFields.map((key) => `hearth:${key}`),
    );
    await expect(stackProgram(true)).rejects.toThrow(
      /^a rotation is unfinished; nothing was changed: `npm run deploy -- up --stack \w+` names the command that completes it\.$/,
    );
  },
);
