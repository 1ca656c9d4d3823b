import { lastLineOf } from "../../core/execute.ts";
import { textOf } from "../../core/failure.ts";
import type { KubernetesConfig } from "../kubernetes/kubernetes-schema.ts";
import {
  KubectlError,
  kubectlAt,
  typedKubectl,
} from "../kubernetes/kubectl.ts";
import { RELEASE_NAME, SUPERVISOR_POD } from "../kubernetes/release-name.ts";
import { BACKUP_WITHIN_MS } from "./backup-first.ts";
import { ANSWERS_WITHIN_MS } from "./host-view.ts";
import type { Session } from "./session.ts";
import { RELEASE_TYPE, readState } from "./state.ts";
import {
  backupNotice,
  migrationNotice,
  unappliedMigrations,
} from "./unapplied-migrations.ts";

/**
 * Backs up Postgres and the notes if the gateways of this checkout will migrate the database, as on two hosts: the supervisor of the
 * cluster does it. Throws one sentence if that fails; nothing was changed then.
 */
export async function backUpClusterFirst(
  session: Pick<Session, "stack" | "say">,
  config: KubernetesConfig,
): Promise<void> {
  const { missing, notes } = await inquire(session, config);
  if (missing.length === 0) {
    return;
  }
  session.say(backupNotice(missing));
  await runJob(config, "postgres-backup");
  if (notes) {
    await runJob(config, "notes-backup");
  }
}

/** Says in a preview which migrations an `up` would run. If they cannot be read, `up` says why. */
export async function announceClusterMigrations(
  { stack, say }: Pick<Session, "stack" | "say">,
  config: KubernetesConfig,
): Promise<void> {
  const quiet = { stack, say: () => undefined };
  const { missing } = await inquire(quiet, config).catch(() => NOTHING);
  if (missing.length > 0) {
    say(migrationNotice(missing));
  }
}

interface Inquiry {
  /** Migrations of this checkout that are not applied yet; none for a database without tables. */
  readonly missing: readonly string[];
  readonly notes: boolean;
}

const NOTHING: Inquiry = { missing: [], notes: false };

async function inquire(
  session: Pick<Session, "stack" | "say">,
  config: KubernetesConfig,
): Promise<Inquiry> {
  if (!(await findSupervisor(session, config))) {
    return NOTHING;
  }
  const { migrations, notes } = await askSupervisor(config);
  return { missing: unappliedMigrations(migrations), notes };
}

interface Listed {
  readonly items: readonly {
    readonly kind: string;
    readonly metadata: { readonly name: string };
    readonly status?: {
      readonly conditions?: readonly {
        readonly type: string;
        readonly status: string;
      }[];
    };
  }[];
}

/** False if nothing can or need be backed up; says so if there is data. Throws if a running release has no ready supervisor. */
async function findSupervisor(
  session: Pick<Session, "stack" | "say">,
  config: KubernetesConfig,
): Promise<boolean> {
  const { cluster, chartValues } = config;
  const { say } = session;
  const items = await listObjects(session, config);
  const pods = items.filter(({ kind }) => kind === "Pod");
  if (pods.length === 0) {
    if (items.length > 0) {
      say(
        "Hearth is not running in the cluster, so its data is not backed up before this run.",
      );
    }
    return false;
  }
  if ((chartValues["supervisor"] as Enabling | undefined)?.enabled === false) {
    say(
      "hearth:chartValues.supervisor.enabled is false, so nothing is backed up before this run.",
    );
    return false;
  }
  const isReady = pods
    .find(({ metadata }) => metadata.name === SUPERVISOR_POD)
    ?.status?.conditions?.some(
      ({ type, status }) => type === "Ready" && status === "True",
    );
  if (isReady !== true) {
    throw new Error(
      `${SUPERVISOR_POD}, which knows whether the database needs a backup first, is not ready; nothing was changed: check \`${typedKubectl(cluster, `describe pod ${SUPERVISOR_POD}`)}\`, or skip the backup with --no-backup.`,
    );
  }
  return true;
}

/** The release's serving pods and its volumes; none if the cluster cannot be asked and the stack is not installed. */
async function listObjects(
  { stack, say }: Pick<Session, "stack" | "say">,
  { cluster }: KubernetesConfig,
): Promise<Listed["items"]> {
  try {
    const output = await kubectlAt(
      cluster,
      [
        "get",
        "pods,persistentvolumeclaims",
        `--selector=app.kubernetes.io/instance=${RELEASE_NAME},app.kubernetes.io/component notin (migration,test)`,
        "--output=json",
      ],
      "",
      ANSWERS_WITHIN_MS,
    );
    return (JSON.parse(output) as Listed).items;
  } catch (error) {
    const { resources } = await readState(stack);
    if (resources.some(({ type }) => type === RELEASE_TYPE)) {
      throw new Error(
        `the cluster cannot be asked whether the database needs a backup first (${lastLine(error)}); nothing was changed: check that \`${typedKubectl(cluster, "get pods")}\` works, or skip the backup with --no-backup.`,
        { cause: error },
      );
    }
    // A first installation needs no kubectl.
    say(
      `The cluster cannot be asked for data of an earlier installation (${lastLine(error)}), so nothing is backed up before this run.`,
    );
    return [];
  }
}

interface Enabling {
  readonly enabled?: unknown;
}

/** Runs in the supervisor's pod, which has no psql: prints the applied migrations, and whether the stack has notes, as JSON. */
const INQUIRY = `import { readFileSync } from "node:fs";
import pg from "pg";
const { BACKUP_DATABASE_URL, BACKUP_DATABASE_URL_FILE, NOTES_URL } = process.env;
const KNOWN = "SELECT to_regclass('public.migrations') IS NOT NULL AS known";
try {
  const client = new pg.Client({
    connectionString: BACKUP_DATABASE_URL ?? readFileSync(BACKUP_DATABASE_URL_FILE, "utf8").trim(),
    connectionTimeoutMillis: 10_000,
  });
  await client.connect();
  const { rows: [{ known }] } = await client.query(KNOWN);
  const { rows } = known ? await client.query("SELECT name FROM public.migrations") : { rows: [] };
  await client.end();
  console.log(JSON.stringify({ migrations: rows.map(({ name }) => name), notes: Boolean(NOTES_URL) }));
} catch (error) {
  console.log(error.message || error.code);
  process.exitCode = 1;
}
`;

async function askSupervisor({ cluster }: KubernetesConfig): Promise<{
  readonly migrations: readonly string[];
  readonly notes: boolean;
}> {
  try {
    const output = await kubectlAt(
      cluster,
      ["exec", "--stdin", SUPERVISOR_POD, "--", "node", "--input-type=module"],
      INQUIRY,
      ANSWERS_WITHIN_MS,
    );
    return JSON.parse(output) as {
      readonly migrations: readonly string[];
      readonly notes: boolean;
    };
  } catch (error) {
    throw new Error(
      `the applied migrations cannot be read from Postgres (${lastLine(error)}); nothing was changed: check \`${typedKubectl(cluster, `exec ${SUPERVISOR_POD} -- hearth status`)}\`, or skip the backup with --no-backup.`,
      { cause: error },
    );
  }
}

async function runJob(
  { cluster }: KubernetesConfig,
  job: string,
): Promise<void> {
  const command = ["hearth", "jobs", "run", job];
  try {
    await kubectlAt(
      cluster,
      ["exec", SUPERVISOR_POD, "--", ...command],
      "",
      BACKUP_WITHIN_MS,
    );
  } catch (error) {
    throw new Error(
      `the backup failed (${job}: ${lastLine(error)}), so nothing was changed: run \`${typedKubectl(cluster, `exec ${SUPERVISOR_POD} -- ${command.join(" ")}`)}\` to see why; once it works, run the same command again, or skip the backup with --no-backup.`,
      { cause: error },
    );
  }
}

/** What a failed command says: a job reports on standard output, and kubectl adds only an exit code to it. */
function lastLine(error: unknown): string {
  if (!(error instanceof KubectlError)) {
    return lastLineOf(textOf(error));
  }
  const { stdout, reason } = error.execution;
  return lastLineOf(stdout) || reason;
}
