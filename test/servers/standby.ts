import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  chownSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { waitFor } from "../wait-for.ts";
import {
  startPostgres,
  SUPERUSER_PASSWORD,
  type TestPostgres,
} from "./postgres.ts";
import { startRelay, type Relay } from "./relay.ts";
import { postgresWire } from "./wire-postgres.ts";
import { withClient } from "./with-client.ts";

/** Two servers behind one address: a primary, and a standby that follows it without being waited for. */
export interface TestReplication {
  /** The URL of a database of the current primary, as superuser; it stays the same. */
  url(database: string): string;
  /** Waits until the standby has everything that the primary has. */
  caughtUp(): Promise<void>;
  /** The standby receives nothing more. */
  cutStream(): void;
  /** Kills the primary, promotes the standby and leads new connections to it. */
  failOver(): Promise<void>;
  /** Replaces the killed server by a new standby of the current primary, with all its data. */
  rejoin(): Promise<void>;
  remove(): Promise<void>;
}

const KEEP_WAL = ["-c", "wal_keep_size=256MB", "-c", "max_wal_size=256MB"];

export async function startReplication(): Promise<TestReplication> {
  const primary = await startPostgres(KEEP_WAL);
  const address = await startRelay(primary.port, postgresWire);
  const replication = new Replication(primary, address);
  try {
    await replication.rejoin();
  } catch (error) {
    await replication.remove();
    throw error;
  }
  return replication;
}

class Replication implements TestReplication {
  #primary: TestPostgres;
  #standby: TestPostgres | null = null;
  /** From the standby to the primary. */
  #stream: Relay | null = null;
  readonly #address: Relay;

  constructor(primary: TestPostgres, address: Relay) {
    this.#primary = primary;
    this.#address = address;
  }

  url(database: string): string {
    const url = new URL(this.#primary.url(database));
    url.port = String(this.#address.port);
    return url.href;
  }

  async caughtUp(): Promise<void> {
    const end = await valueOf(this.#primary, "pg_current_wal_flush_lsn()");
    await waitFor(
      "the standby",
      async () =>
        (await valueOf(
          this.#requireStandby(),
          `pg_last_wal_replay_lsn() >= '${String(end)}'`,
        )) === true,
    );
  }

  cutStream(): void {
    this.#stream?.cut();
  }

  async failOver(): Promise<void> {
    const standby = this.#requireStandby();
    this.#address.cut();
    await this.#primary.stop("SIGKILL");
    await this.#primary.remove();
    await valueOf(standby, "pg_promote()");
    this.#primary = standby;
    this.#standby = null;
    this.#address.retarget(standby.port);
    this.#address.restore();
  }

  async rejoin(): Promise<void> {
    await this.#stream?.close();
    const stream = await startRelay(this.#primary.port, postgresWire);
    this.#stream = stream;
    const { data, url } = this.#primary;
    this.#standby = await startPostgres(KEEP_WAL, (place) =>
      copyCluster(
        { url: url("postgres"), data },
        place.data,
        `host=127.0.0.1 port=${stream.port} password=${SUPERUSER_PASSWORD}`,
      ),
    );
    await this.caughtUp();
  }

  async remove(): Promise<void> {
    await this.#standby?.remove();
    await this.#stream?.close();
    await this.#address.close();
    await this.#primary.remove();
  }

  #requireStandby(): TestPostgres {
    if (this.#standby === null) {
      throw new Error("there is no standby: rejoin first");
    }
    return this.#standby;
  }
}

/**
 * What `pg_basebackup --write-recovery-conf` does, which the packaged Postgres does not have: copies the data directory of the running
 * server at `url` (as superuser) into one of a standby that follows `conninfo`.
 */
export async function copyCluster(
  { url, data: from }: { readonly url: string; readonly data: string },
  to: string,
  conninfo: string,
): Promise<void> {
  await withClient(url, async (client) => {
    await client.query("SELECT pg_backup_start('standby', true)");
    mkdirSync(dirname(to), { recursive: true, mode: 0o711 });
    copyWhileWritten(from, to);
    const { rows } = await client.query<{ labelfile: string }>(
      "SELECT labelfile FROM pg_backup_stop(false)",
    );
    writeFileSync(join(to, "backup_label"), rows[0]?.labelfile ?? "");
  });
  for (const file of ["postmaster.pid", "postmaster.opts"]) {
    rmSync(join(to, file), { force: true });
  }
  const wal = join(to, "pg_wal");
  for (const name of readdirSync(wal)) {
    if (statSync(join(wal, name)).isFile()) {
      rmSync(join(wal, name));
    }
  }
  writeFileSync(join(to, "standby.signal"), "");
  appendFileSync(
    join(to, "postgresql.auto.conf"),
    `primary_conninfo = '${conninfo} user=postgres sslmode=disable gssencmode=disable'\n`,
  );
  const { uid, gid } = statSync(from);
  for (const file of ["backup_label", "standby.signal"]) {
    chownSync(join(to, file), uid, gid);
  }
}

/** Files that the server removes meanwhile are left out. */
function copyWhileWritten(from: string, to: string): void {
  try {
    execFileSync("cp", ["-a", from, to], {
      stdio: "pipe",
      env: { PATH: "/usr/bin:/bin", LC_ALL: "C" },
    });
  } catch (error) {
    const lines = String((error as { stderr?: Buffer }).stderr)
      .trim()
      .split("\n");
    if (!lines.every((line) => line.includes("No such file"))) {
      throw error;
    }
  }
}

async function valueOf(
  server: TestPostgres,
  expression: string,
): Promise<unknown> {
  return withClient(server.url("postgres"), async (client) => {
    const { rows } = await client.query<{ value: unknown }>(
      `SELECT ${expression} AS value`,
    );
    return rows[0]?.value;
  });
}
