import { existsSync } from "node:fs";
import { join } from "node:path";
import { gatewayDatabaseUrl } from "../embedded/gateway.ts";
import { locateHome, type Home } from "../supervisor/home/home.ts";
import { operatorEnvironment } from "../embedded/node-program.ts";
import { handOver, readSecretsFile } from "../supervisor/home/secrets.ts";
import { readVariable } from "../core/environment.ts";
import { execute } from "../core/execute.ts";
import { Failure } from "../core/failure.ts";
import {
  aliveIn,
  readRunFile,
} from "../supervisor/runtimes/process/run-file.ts";
import { defineVerb, type ExitCode, type Verb } from "./verb.ts";

const litellm = defineVerb({
  name: "import litellm",
  description:
    "Bring keys, people, budgets, models and spend from a LiteLLM proxy's database (LITELLM_DATABASE_URL; LITELLM_SALT_KEY reads its models).",
  example:
    "LITELLM_DATABASE_URL=postgresql://… hearth import litellm --dry-run",
  args: {
    "dry-run": {
      type: "boolean",
      description: "Tell what would be brought, and bring nothing",
    },
    logs: {
      type: "boolean",
      description: "Bring the rows of the spend log too",
    },
    json: { type: "boolean", description: "Print what was brought as JSON" },
  },
  run: ({ "dry-run": dryRun, logs, json }) =>
    runImport([
      ...(dryRun === true ? ["--dry-run"] : []),
      ...(logs === true ? ["--logs"] : []),
      ...(json === true ? ["--json"] : []),
    ]),
});

export const importing: Verb = {
  name: "import",
  description: "Come from another gateway.",
  example: "hearth import litellm --help",
  verbs: { litellm: async () => litellm },
};

/** The import is a program of the gateway's: it writes the gateway's tables. */
async function runImport(args: readonly string[]): Promise<ExitCode> {
  const home = locateHome();
  const program = join(home.project, "gateway", "import", "main.ts");
  if (!existsSync(program)) {
    throw new Failure(
      "the import comes with the gateway: on a deployed host run `docker exec --env LITELLM_DATABASE_URL hearth-gateway node gateway/import/main.ts`.",
    );
  }
  const { exitCode } = await execute(process.execPath, [program, ...args], {
    cwd: home.project,
    env: environmentOf(home),
    stdout: "inherit",
    stderr: "inherit",
  });
  return exitCode === 0 || exitCode === 2 ? exitCode : 1;
}

/** DATABASE_URL where it is set; else the database that `hearth up` runs here. */
function environmentOf(home: Home): Readonly<Record<string, string>> {
  if (readVariable("DATABASE_URL") !== undefined) {
    return operatorEnvironment(home, []);
  }
  const secrets = readSecretsFile(home);
  const postgres = aliveIn(readRunFile(home.runFile).services["postgres"]);
  if (
    secrets?.gatewayDbPassword === undefined ||
    secrets.masterKey === undefined ||
    secrets.saltKey === undefined ||
    postgres === undefined
  ) {
    throw new Failure(
      "Hearth's own database does not run here: `hearth up` starts it, or name another one in DATABASE_URL.",
    );
  }
  return {
    ...operatorEnvironment(home, [
      "DATABASE_URL",
      "PROXY_MASTER_KEY",
      "HEARTH_SALT_KEY",
    ]),
    DATABASE_URL_FILE: handOver(
      home,
      "DATABASE_URL",
      gatewayDatabaseUrl(
        {
          gatewayDbRole: secrets.gatewayDbRole,
          gatewayDbPassword: secrets.gatewayDbPassword,
        },
        postgres.port,
      ),
    ),
    PROXY_MASTER_KEY_FILE: handOver(
      home,
      "PROXY_MASTER_KEY",
      secrets.masterKey,
    ),
    // Provider keys are encrypted with it, as the gateway here reads them.
    HEARTH_SALT_KEY_FILE: handOver(home, "HEARTH_SALT_KEY", secrets.saltKey),
    HEARTH_JOURNAL_DIR: home.journal,
  };
}
