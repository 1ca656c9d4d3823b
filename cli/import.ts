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
import { defineVerb, jsonArg, type ExitCode, type Verb } from "./verb.ts";

const litellm = defineVerb({
  name: "import litellm",
  description:
    "Import keys, users, teams, budgets, models and spend from the database of a LiteLLM proxy (LITELLM_DATABASE_URL; LITELLM_SALT_KEY decrypts its models).",
  example:
    "LITELLM_DATABASE_URL=postgresql://… hearth import litellm --dry-run",
  args: {
    "dry-run": {
      type: "boolean",
      description: "Show what would be imported; change nothing",
    },
    logs: {
      type: "boolean",
      description: "Also import the rows of the spend log",
    },
    ...jsonArg,
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
  description: "Import from another gateway.",
  example: "hearth import litellm --help",
  verbs: { litellm: async () => litellm },
};

/** The import is part of the gateway, whose tables it writes. */
async function runImport(args: readonly string[]): Promise<ExitCode> {
  const home = locateHome();
  const program = join(home.project, "gateway", "import", "main.ts");
  if (!existsSync(program)) {
    throw new Failure(
      "the import is part of the gateway: on a deployed host run `docker exec --env LITELLM_DATABASE_URL hearth-gateway node gateway/import/main.ts`.",
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

/** DATABASE_URL if it is set; else the database that `hearth up` runs here. */
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
      "Hearth's database is not running here: run `hearth up` to start it, or set DATABASE_URL to another one.",
    );
  }
  return {
    ...operatorEnvironment(home, [
      "DATABASE_URL",
      "DATABASE_DIRECT_URL",
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
    // Encrypts provider keys for the gateway running here.
    HEARTH_SALT_KEY_FILE: handOver(home, "HEARTH_SALT_KEY", secrets.saltKey),
    HEARTH_JOURNAL_DIR: home.journal,
  };
}
