import { readFileSync } from "node:fs";
import { loadConfig, shippedConfig } from "../supervisor/config/load.ts";
import { variablesOf } from "../supervisor/config/variables.ts";
import { locateHome } from "../supervisor/home/home.ts";
import { configFiles } from "../embedded/stack-config.ts";
import { print } from "./terminal.ts";
import { defineVerb } from "./verb.ts";

export const config = defineVerb({
  name: "config",
  description:
    "Print config/supervisor.yaml, the reference of the supervisor's settings.",
  example: "hearth config --check",
  args: {
    check: {
      type: "boolean",
      description: "Check the settings in use instead",
    },
  },
  run: async ({ check }) => {
    if (!check) {
      print(readFileSync(shippedConfig, "utf8").trimEnd());
      return 0;
    }
    const files = configFiles(process.env);
    const { leftOut } = loadConfig(
      files,
      variablesOf(locateHome(), process.env),
    );
    print(`${files.join(", ")}: valid.`);
    for (const sentence of leftOut) {
      if (!sentence.includes("SUPERVISOR_DATABASE_URL")) {
        print(sentence);
      }
    }
    return 0;
  },
});
