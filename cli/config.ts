import { readFileSync } from "node:fs";
import { checkOwnGateway } from "../embedded/gateway-check.ts";
import { configFiles } from "../embedded/stack-config.ts";
import { sentencesOf } from "../core/failure.ts";
import { loadConfig, shippedConfig } from "../supervisor/config/load.ts";
import { variablesOf } from "../supervisor/config/variables.ts";
import { locateHome, type Home } from "../supervisor/home/home.ts";
import { complain, print } from "./terminal.ts";
import { defineVerb } from "./verb.ts";

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
  },
  run: async ({ check }) => {
    if (!check) {
      print(readFileSync(shippedConfig, "utf8").trimEnd());
      return 0;
    }
    const home = locateHome();
    const isValid = checkSupervisor(home);
    return (await checkGatewayHere(home)) && isValid ? 0 : 1;
  },
});

function checkSupervisor(home: Home): boolean {
  const files = configFiles(process.env);
  try {
    const { leftOut } = loadConfig(files, variablesOf(home, process.env));
    print(`${files.join(", ")}: valid.`);
    for (const sentence of leftOut) {
      if (!sentence.includes("SUPERVISOR_DATABASE_URL")) {
        print(sentence);
      }
    }
    return true;
  } catch (error) {
    complain(sentencesOf(error));
    return false;
  }
}

/** In a container, the gateway has files and variables of its own: it checks them itself. */
async function checkGatewayHere(home: Home): Promise<boolean> {
  if (["docker", "kubernetes"].includes(process.env["HEARTH_RUNTIME"] ?? "")) {
    return true;
  }
  const { mistakes, warnings } = await checkOwnGateway(home, process.env);
  complain(mistakes);
  warnings.forEach((sentence) => print(sentence));
  if (mistakes.length === 0) {
    print("The gateway's configuration: valid.");
  }
  return mistakes.length === 0;
}
