import {
  accessSync,
  constants,
  existsSync,
  statSync,
  statfsSync,
} from "node:fs";
import { dirname } from "node:path";
import {
  asTyped,
  BYTES_NEEDED,
  isNewHome,
  type Home,
} from "../../supervisor/home/home.ts";
import { inspectCluster } from "../../embedded/postgres-cluster.ts";
import { findPostgresData } from "../../embedded/postgres-place.ts";
import {
  readSecretsFile,
  type Secrets,
} from "../../supervisor/home/secrets.ts";
import { whyNotWritable } from "../../supervisor/checks/kinds/disk.ts";
import { codeOf, sentencesOf } from "../../core/failure.ts";
import { sizeWords } from "../../core/size.ts";
import {
  fine,
  hint,
  wrong,
  wrongBySentence,
  type Finding,
} from "../../core/finding.ts";
import { probeHome } from "./probe-home.ts";

const WARN_BELOW_BYTES = 1e9;

/** Owners and permissions of the data, integrity of the database's directory and all other files. Changes nothing. */
export function probeFiles(home: Home): readonly Finding[] {
  return [
    ...(existsSync(home.root) ? probeRights(home) : []),
    ...(isNewHome(home)
      ? [fine("files", `not started in ${asTyped(home.root)} yet`)]
      : [...probeSecrets(home), probePostgresData(home), ...probeHome(home)]),
  ];
}

/** Whether the disk of the data directory can be written, and its free space. */
export async function probeDisk({ root }: Home): Promise<Finding> {
  let place = root;
  while (!existsSync(place)) {
    place = dirname(place);
  }
  const damage = await whyNotWritable(place);
  if (damage !== undefined) {
    return wrongBySentence("disk", `${place} cannot be used: ${damage}`);
  }
  const { bavail, bsize, files, ffree } = statfsSync(place);
  const free = bavail * bsize;
  const text = `${sizeWords(free)} free on the disk of ${asTyped(root)}`;
  const fix = `du -xh --max-depth=2 ${place} | sort -h | tail`;
  if (free < BYTES_NEEDED) {
    return wrong(
      "disk",
      `${text}; Hearth needs ${sizeWords(BYTES_NEEDED)} to start`,
      fix,
    );
  }
  if (files > 0 && ffree / files < 0.01) {
    return wrong(
      "disk",
      "the disk has almost no inodes left for new files",
      fix,
    );
  }
  return free < WARN_BELOW_BYTES
    ? hint("disk", `${text}, which may soon be used up`, fix)
    : fine("disk", text);
}

function probeRights(home: Home): readonly Finding[] {
  const uid = process.getuid?.();
  const { uid: owner, mode } = statSync(home.root);
  if (uid !== undefined && uid !== 0 && owner !== uid) {
    return [
      wrong(
        "files",
        `${home.root} belongs to user id ${owner}; you are ${uid}`,
        `sudo chown -R ${uid} ${home.root}`,
      ),
    ];
  }
  const readOnly = [home.root, home.logs, home.journal, home.notes].find(
    (path) => existsSync(path) && !isWritable(path),
  );
  if (readOnly !== undefined) {
    return [
      wrong("files", `${readOnly} is not writable`, `chmod u+rwx ${readOnly}`),
    ];
  }
  return (mode & 0o066) === 0
    ? []
    : [
        hint(
          "files",
          `${asTyped(home.root)} is readable by other users`,
          `chmod go-rw ${home.root}`,
        ),
      ];
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch (error) {
    // Permissions do not make a read-only file system writable.
    return codeOf(error) === "EROFS";
  }
}

function probeSecrets(home: Home): readonly Finding[] {
  try {
    const secrets = readSecretsFile(home);
    return secrets === undefined
      ? [
          wrong(
            "files",
            `${home.secrets} not found; the data in ${home.root} cannot be opened without it`,
            `restore it from a copy, or start over: mv ${home.root} ${home.root}.old`,
          ),
        ]
      : [probeSecretRights(home), ...probeRotation(secrets)];
  } catch (error) {
    return [wrongBySentence("files", sentencesOf(error).join(" "))];
  }
}

/** What `hearth rotate` has started and not completed. */
function probeRotation({
  rotation,
  previousMasterKey,
  previousMasterKeyUntil,
}: Partial<Secrets>): readonly Finding[] {
  return [
    ...(rotation === undefined
      ? []
      : [
          wrong(
            "secrets",
            `the rotation of ${rotation.of} is not complete`,
            `hearth rotate ${rotation.of}`,
          ),
        ]),
    ...(previousMasterKeyUntil === undefined || previousMasterKey !== undefined
      ? []
      : [
          wrong(
            "secrets",
            "the old master key was ended, but the gateway may still accept it",
            "hearth rotate master --end",
          ),
        ]),
  ];
}

function probeSecretRights(home: Home): Finding {
  return (statSync(home.secrets).mode & 0o077) === 0
    ? fine("files", "secrets and data are present and readable only by you")
    : wrong(
        "files",
        `${asTyped(home.secrets)}, which contains all passwords, is readable by other users`,
        `chmod 600 ${home.secrets}`,
      );
}

function probePostgresData(home: Home): Finding {
  try {
    const place = findPostgresData(home);
    if (place === undefined) {
      return hint(
        "postgres",
        "no database yet; the next start creates one",
        "hearth up",
      );
    }
    inspectCluster(place);
    return fine(
      "postgres",
      `the data directory of Postgres ${place.major} is complete`,
    );
  } catch (error) {
    return wrongBySentence("postgres", sentencesOf(error).join(" "));
  }
}
