import { readFileSync } from "node:fs";
import { parse } from "yaml";
import {
  checkOwnGateway,
  type GatewayCheck,
} from "../embedded/gateway-check.ts";
import { configFiles } from "../embedded/stack-config.ts";
import { installationOfSupervisor } from "../core/installation.ts";
import { sentencesOf } from "../core/failure.ts";
import { loadConfig, shippedConfig } from "../supervisor/config/load.ts";
import { variablesOf } from "../supervisor/config/variables.ts";
import { locateHome, type Home } from "../supervisor/home/home.ts";
import { complain, print, printAnswer, printJson } from "./terminal.ts";
import { defineVerb, jsonArg } from "./verb.ts";

export const config = defineVerb({
  name: "config",
  description:
    "Print config/supervisor.yaml, the reference of the supervisor's settings.",
  example: "hearth config --check",
  args: {
    check: {
      type: "boolean",
      description:
        "Check the settings in use instead, and those of the gateway",
    },
    ...jsonArg,
  },
  run: async ({ check, json }) => {
    if (!check) {
      showReference(json === true);
      return 0;
    }
    const home = locateHome();
    const files = configFiles(process.env);
    const supervisor = checkSupervisor(home, files);
    const gateway = await checkGatewayHere(home);
    const mistakes = [...supervisor.mistakes, ...(gateway?.mistakes ?? [])];
    const notes = [...supervisor.warnings, ...(gateway?.warnings ?? [])];
    complain(mistakes);
    if (json) {
      printJson({ files, valid: mistakes.length === 0, notes });
      return mistakes.length === 0 ? 0 : 1;
    }
    if (supervisor.mistakes.length === 0) {
      print(`${files.join(", ")}: valid.`);
    }
    notes.forEach((sentence) => print(sentence));
    if (gateway?.mistakes.length === 0) {
      print("The gateway's configuration: valid.");
    }
    return mistakes.length === 0 ? 0 : 1;
  },
});

/** The annotated file, or its settings as JSON, with references such as `${NAME}` as they are written. */
function showReference(json: boolean): void {
  const text = readFileSync(shippedConfig, "utf8");
  const settings = parse(text) as unknown;
  printAnswer(json, { file: shippedConfig, settings }, text.trimEnd());
}

function checkSupervisor(home: Home, files: readonly string[]): GatewayCheck {
  try {
    const { leftOut } = loadConfig(files, variablesOf(home, process.env));
    const warnings = leftOut.filter(
      (sentence) => !sentence.includes("SUPERVISOR_DATABASE_URL"),
    );
    return { mistakes: [], warnings };
  } catch (error) {
    return { mistakes: sentencesOf(error), warnings: [] };
  }
}

/** null: in a container, where the gateway has files and variables of its own, it checks them itself. */
async function checkGatewayHere(home: Home): Promise<GatewayCheck | null> {
  return installationOfSupervisor(process.env) === "embedded"
    ? checkOwnGateway(home, process.env)
    : null;
}
