import { readVariable } from "../../core/environment.ts";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { pino } from "pino";
import { sessionUrlOf } from "../config/database.ts";
import { formatProblem } from "../../core/config/problem.ts";
import { loadConfig } from "../config/load.ts";
import { secret } from "../config/secret.ts";
import { addressProblem } from "../database/addresses.ts";
import { createPool, isUnavailable } from "../database/pool.ts";
import { importLitellm } from "./litellm.ts";
import { report } from "./report.ts";
import { SourceRefused } from "./source.ts";

/** `hearth import litellm`: addresses come from the environment, so that no password appears in the arguments. */

function fail(sentence: string, code = 1): never {
  process.stderr.write(`hearth: ${sentence}\n`);
  process.exit(code);
}

function readArguments() {
  try {
    return parseArgs({
      options: {
        "dry-run": { type: "boolean", default: false },
        logs: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
      },
    }).values;
  } catch (error) {
    return fail(
      `${(error as Error).message} Usage: hearth import litellm [--dry-run] [--logs] [--json]`,
      2,
    );
  }
}

/** A variable, or the content of the file that `NAME_FILE` points to. */
function given(name: string): string | null {
  try {
    return readVariable(name) ?? null;
  } catch (error) {
    return fail((error as Error).message);
  }
}

const options = readArguments();
const litellmUrl =
  given("LITELLM_DATABASE_URL") ??
  fail(
    "LITELLM_DATABASE_URL is not set: give the address of LiteLLM's database, or a file with it in LITELLM_DATABASE_URL_FILE.",
  );
const litellmKeys = ["LITELLM_SALT_KEY", "LITELLM_MASTER_KEY"]
  .map(given)
  .filter((key) => key !== null)
  .map(secret);
const loaded = loadConfig({
  // Of the gateway's settings only the database, the windows and the models matter here: no journal is opened.
  env: { HEARTH_JOURNAL_DIR: tmpdir(), ...process.env },
  projectRoot: fileURLToPath(new URL("../..", import.meta.url)),
});
if (!loaded.ok) {
  fail(loaded.problems.map(formatProblem).join("\nhearth: "));
}
const { database, general } = loaded.config;
const log = pino({ level: "silent" });
// Migrations need a session, and the rest runs once: a pooler would be of no use.
const pool = createPool(sessionUrlOf(database), 2, log);
try {
  const { notes, brought } = await importLitellm({
    pool,
    log,
    litellmUrl,
    windowing: {
      timeZone: general.timezone,
      proxyDuration: general.budgetDuration,
    },
    keeping: { config: loaded.config, env: process.env, litellmKeys },
    dryRun: options["dry-run"],
    logs: options.logs,
    now: Date.now(),
    progress: (rows) => {
      if (process.stderr.isTTY) {
        process.stderr.write(
          `\r${rows.toLocaleString("en-US")} spend log rows`,
        );
      }
    },
  });
  if (process.stderr.isTTY && options.logs) {
    process.stderr.write("\n");
  }
  process.stdout.write(
    options.json
      ? `${JSON.stringify({ ...brought, kinds: notes.tallies(), remarks: notes.remarks() }, null, 2)}\n`
      : `${report(notes, brought)}\n`,
  );
} catch (error) {
  if (error instanceof SourceRefused) {
    fail(error.message);
  }
  const problem = addressProblem(
    error,
    database.directUrl === null ? "DATABASE_URL" : "DATABASE_DIRECT_URL",
  );
  if (problem !== null) {
    fail(problem);
  }
  if (isUnavailable(error)) {
    fail(
      "Hearth's own database cannot be reached: start it (`hearth up`) or check DATABASE_URL, then run this again; nothing is imported twice.",
    );
  }
  throw error;
} finally {
  await pool.end();
}
