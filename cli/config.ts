import { readFileSync } from "node:fs";
import { parse } from "yaml";
import { loadConfig, shippedConfig } from "../supervisor/config/load.ts";
import { variablesOf } from "../supervisor/config/variables.ts";
import { locateHome } from "../supervisor/home/home.ts";
import { configFiles } from "../embedded/stack-config.ts";
import { print, printJson } from "./terminal.ts";
import { defineVerb, jsonArg } from "./verb.ts";

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
    ...jsonArg,
  },
  run: async ({ check, json }) => {
    if (!check) {
      showReference(json === true);
      return 0;
    }
    const files = configFiles(process.env);
    const { leftOut } = loadConfig(
      files,
      variablesOf(locateHome(), process.env),
    );
    const notes = leftOut.filter(
      (sentence) => !sentence.includes("SUPERVISOR_DATABASE_URL"),
    );
    if (json) {
      printJson({ files, valid: true, notes });
    } else {
      print(`${files.join(", ")}: valid.`);
      notes.forEach(print);
    }
    return 0;
  },
});

/** The annotated file, or its settings as JSON, with references such as `${NAME}` as they are written. */
function showReference(json: boolean): void {
  const text = readFileSync(shippedConfig, "utf8");
  if (json) {
    printJson({ file: shippedConfig, settings: parse(text) as unknown });
  } else {
    print(text.trimEnd());
  }
}
