import {
  chmodSync,
  chownSync,
  readdirSync,
  readFileSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { codeOf } from "../../core/failure.ts";
import { RELEASE_NAME } from "../../infra/kubernetes/release-name.ts";
import { copyCluster } from "../servers/standby.ts";
import { apply, get, kubectl, machine } from "./cluster.ts";
import {
  isReady,
  podsOf,
  secretOf,
  type Pod,
  type Release,
} from "./release.ts";
import { withClient } from "../servers/with-client.ts";

const NAME = "standby";
const ROLE = { "hearth-test": NAME };
const PRIMARY = `${RELEASE_NAME}-postgres`;
/** Where the pods mount their volume. */
const MOUNT = "/var/lib/postgresql/";

/** A second Postgres in the release's namespace: it follows the bundled one, which does not wait for it. */
interface Standby {
  /** Waits until it has everything that the primary has. */
  caughtUp(): Promise<void>;
  /** It receives nothing more. */
  cutStream(): Promise<void>;
  /** Rows of the ledger that only the primary has. */
  missingRows(): Promise<number>;
  /** Kills the primary for good, promotes the standby and leads the Service to it. */
  failOver(): Promise<void>;
}

export async function startStandby(release: Release): Promise<Standby> {
  const { namespace } = release;
  const { POSTGRES_PASSWORD: password = "" } = await secretOf(
    release,
    "-database",
  );
  const [primary] = await podsOf(release, "postgres");
  if (primary === undefined) {
    throw new Error("the release has no Postgres");
  }
  const url = (pod: Pod, database: string) =>
    `postgres://postgres:${password}@${pod.status.podIP}:5432/${database}`;
  const ask = (pod: Pod, expression: string, database = "postgres") =>
    valueOf(url(pod, database), expression);

  const pgdata = await kubectl([
    "exec",
    primary.metadata.name,
    `--namespace=${namespace}`,
    "--",
    "sh",
    "-c",
    'echo "host replication postgres all scram-sha-256" >>"$PGDATA/pg_hba.conf" && echo "$PGDATA"',
  ]);
  await ask(primary, "ALTER SYSTEM SET wal_keep_size = '256MB'");
  await ask(primary, "SELECT pg_reload_conf()");

  const own = await volumeOf(namespace, `data-${PRIMARY}-0`);
  const free = await freeVolume();
  // Otherwise the kubelet opens all files to the pod's group, and Postgres rejects such a directory.
  const root = statSync(pathOf(own));
  chownSync(pathOf(free), root.uid, root.gid);
  chmodSync(pathOf(free), root.mode & 0o7777);
  const within = pgdata.trim().slice(MOUNT.length);
  await copyCluster(
    { url: url(primary, "postgres"), data: join(pathOf(own), within) },
    join(pathOf(free), within),
    `host=${primary.status.podIP} port=5432 password=${password}`,
  );
  await apply(claim(namespace, free), await standbyPod(namespace, primary));
  const standby = await readyPod(namespace);

  return {
    async caughtUp() {
      const end = await ask(primary, "SELECT pg_current_wal_flush_lsn()");
      await expect
        .poll(
          () => ask(standby, `SELECT pg_last_wal_replay_lsn() >= '${end}'`),
          { timeout: 10_000 },
        )
        .toBe(true);
    },
    async cutStream() {
      await ask(standby, "ALTER SYSTEM SET primary_conninfo = ''");
      await ask(standby, "SELECT pg_reload_conf()");
      await expect
        .poll(() =>
          ask(standby, "SELECT count(*)::int FROM pg_stat_wal_receiver"),
        )
        .toBe(0);
    },
    async missingRows() {
      const [all, known] = await Promise.all(
        [primary, standby].map((pod) =>
          ask(pod, "SELECT count(*)::int FROM spend_log", "hearth"),
        ),
      );
      return Number(all) - Number(known);
    },
    async failOver() {
      killProcessesOf(primary);
      // Kubernetes would start it again.
      await kubectl([
        "scale",
        `statefulset/${PRIMARY}`,
        `--namespace=${namespace}`,
        "--replicas=0",
      ]);
      await ask(standby, "SELECT pg_promote()");
      await kubectl([
        "patch",
        `service/${PRIMARY}`,
        `--namespace=${namespace}`,
        "--type=json",
        `--patch=${JSON.stringify([{ op: "replace", path: "/spec/selector", value: ROLE }])}`,
      ]);
    },
  };
}

/** The first column of the first row; null for a statement without rows. */
async function valueOf(url: string, statement: string): Promise<unknown> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<unknown[]>({
      text: statement,
      rowMode: "array",
    });
    return rows[0]?.[0] ?? null;
  });
}

interface Volume {
  readonly metadata: { readonly name: string };
  readonly status: { readonly phase: string };
}

async function volumeOf(namespace: string, name: string): Promise<string> {
  return kubectl([
    "get",
    `persistentvolumeclaim/${name}`,
    `--namespace=${namespace}`,
    "--output=jsonpath={.spec.volumeName}",
  ]);
}

async function freeVolume(): Promise<string> {
  const { items } = await get<{ readonly items: readonly Volume[] }>(
    "persistentvolumes",
  );
  const free = items.find(({ status }) => status.phase === "Available");
  if (free === undefined) {
    throw new Error("no volume is free: raise VOLUMES in test/kube/setup.ts");
  }
  return free.metadata.name;
}

/** The directory of a volume of setup.ts on this machine. */
function pathOf(volume: string): string {
  return join(machine(), "volumes", volume.replace(/^volume-/, ""));
}

function claim(namespace: string, volumeName: string): object {
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { name: NAME, namespace },
    spec: {
      volumeName,
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "1Gi" } },
    },
  };
}

/** A pod like the primary's, with the other volume, and labels by which nothing of the release finds it. */
async function standbyPod(namespace: string, primary: Pod): Promise<object> {
  const { spec } = await get<{
    readonly spec: Readonly<Record<string, unknown>> & {
      readonly volumes: readonly { readonly name: string }[];
    };
  }>(`pod/${primary.metadata.name}`, `--namespace=${namespace}`);
  const { nodeName: _node, hostname: _hostname, volumes, ...same } = spec;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: NAME, namespace, labels: ROLE },
    spec: {
      ...same,
      volumes: volumes.map((volume) =>
        volume.name === "data"
          ? { name: "data", persistentVolumeClaim: { claimName: NAME } }
          : volume,
      ),
    },
  };
}

async function readyPod(namespace: string): Promise<Pod> {
  const read = () => get<Pod>(`pod/${NAME}`, `--namespace=${namespace}`);
  await expect
    .poll(async () => isReady(await read()), {
      timeout: 60_000,
      interval: 500,
    })
    .toBe(true);
  return read();
}

/** As after a power failure: Postgres does not notice its end. Containers are processes of this machine. */
function killProcessesOf({ metadata }: Pod): void {
  const isOfPod = (pid: string) => {
    try {
      return readFileSync(`/proc/${pid}/cgroup`, "utf8").includes(
        `pod${metadata.uid}`,
      );
    } catch {
      return false;
    }
  };
  const pids = readdirSync("/proc").filter(
    (name) => /^\d+$/.test(name) && isOfPod(name),
  );
  if (pids.length === 0) {
    throw new Error(`no process of ${metadata.name} was found`);
  }
  for (const pid of pids) {
    try {
      process.kill(Number(pid), "SIGKILL");
    } catch (error) {
      // With the first process of a container, all others end.
      if (codeOf(error) !== "ESRCH") {
        throw error;
      }
    }
  }
}
