import {
  accessSync,
  constants,
  existsSync,
  statSync,
  statfsSync,
} from "node:fs";
import { dirname } from "node:path";
import { asTyped, isNewHome, type Home } from "../../supervisor/home/home.ts";
import { inspectCluster } from "../../embedded/postgres-cluster.ts";
import { findPostgresData } from "../../embedded/postgres-place.ts";
import { readSecretsFile } from "../../supervisor/home/secrets.ts";
import { sentencesOf } from "../../core/failure.ts";
import {
  fine,
  hint,
  wrong,
  wrongBySentence,
  type Finding,
} from "../../core/finding.ts";
import { lookAtHome } from "./look-at-home.ts";

const MIB = 1024 * 1024;
const NEEDED = 128 * MIB;
const COMFORTABLE = 1024 * MIB;

/** Room on the disk, owners and rights of what is kept, whether the database's directory and every other file are whole. Makes nothing. */
export function lookAtFiles(home: Home): readonly Finding[] {
  return [
    lookAtDisk(home),
    ...(existsSync(home.root) ? lookAtRights(home) : []),
    ...(isNewHome(home)
      ? [fine("files", `nothing was started in ${asTyped(home.root)} yet`)]
      : [lookAtSecrets(home), lookAtPostgresData(home), ...lookAtHome(home)]),
  ];
}

/** Room on the disk that holds everything. */
export function lookAtDisk({ root }: Home): Finding {
  let place = root;
  while (!existsSync(place)) {
    place = dirname(place);
  }
  const { bavail, bsize, files, ffree } = statfsSync(place);
  const free = bavail * bsize;
  const text = `the disk that holds ${asTyped(root)} has ${Math.floor(free / MIB).toLocaleString("en-US")} MiB left`;
  const mend = `du -xh --max-depth=2 ${place} | sort -h | tail`;
  if (free < NEEDED) {
    return wrong(
      "disk",
      `${text}, Hearth needs ${NEEDED / MIB} to start`,
      mend,
    );
  }
  if (files > 0 && ffree / files < 0.01) {
    return wrong("disk", "the disk has hardly any room for new files", mend);
  }
  return free < COMFORTABLE
    ? hint("disk", `${text}: that fills soon`, mend)
    : fine("disk", text);
}

function lookAtRights(home: Home): readonly Finding[] {
  const uid = process.getuid?.();
  const { uid: owner, mode } = statSync(home.root);
  if (uid !== undefined && uid !== 0 && owner !== uid) {
    return [
      wrong(
        "files",
        `${home.root} belongs to user id ${owner}, and you are ${uid}`,
        `sudo chown -R ${uid} ${home.root}`,
      ),
    ];
  }
  const readOnly = [home.root, home.logs, home.journal, home.notes].find(
    (path) => existsSync(path) && !isWritable(path),
  );
  if (readOnly !== undefined) {
    return [
      wrong(
        "files",
        `${readOnly} cannot be written`,
        `chmod u+rwx ${readOnly}`,
      ),
    ];
  }
  return (mode & 0o066) === 0
    ? []
    : [
        hint(
          "files",
          `others may read ${asTyped(home.root)}`,
          `chmod go-rw ${home.root}`,
        ),
      ];
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function lookAtSecrets(home: Home): Finding {
  try {
    if (readSecretsFile(home) === undefined) {
      return wrong(
        "files",
        `${home.secrets} is gone, and without it the data in ${home.root} cannot be opened`,
        `put it back from a copy, or: mv ${home.root} ${home.root}.old`,
      );
    }
  } catch (error) {
    return wrongBySentence("files", sentencesOf(error).join(" "));
  }
  return (statSync(home.secrets).mode & 0o077) === 0
    ? fine("files", "secrets and data are there, and only you can read them")
    : wrong(
        "files",
        `others may read ${asTyped(home.secrets)}, which holds every password`,
        `chmod 600 ${home.secrets}`,
      );
}

function lookAtPostgresData(home: Home): Finding {
  try {
    const place = findPostgresData(home);
    if (place === undefined) {
      return hint(
        "postgres",
        "there is no database yet; the next start makes one",
        "hearth up",
      );
    }
    inspectCluster(place);
    return fine(
      "postgres",
      `the database's directory is whole (Postgres ${place.major})`,
    );
  } catch (error) {
    return wrongBySentence("postgres", sentencesOf(error).join(" "));
  }
}
