import { lstatSync, realpathSync, type Stats } from "node:fs";
import { dirname, join } from "node:path";
import { listDirectory } from "../../core/list-directory.ts";
import { Failure } from "../../core/failure.ts";

/** Users and groups that may write a file that root runs. */
interface Trusted {
  readonly users: ReadonlySet<number>;
  readonly groups: ReadonlySet<number>;
}

/** Git's own files are not run. */
const SKIPPED = ".git";
const STICKY = 0o1000;

/** Throws a Failure if any other user could change the contents of a directory, or replace it. */
export function checkOnlyTrustedWrite(path: string, trusted: Trusted): void {
  const directory = realpathSync(path);
  const found =
    ancestorsOf(directory).find((each) => {
      const stats = lstatSync(each);
      // In a sticky directory, such as /tmp, only owners can replace their files.
      return (stats.mode & STICKY) === 0 && isWritable(stats, trusted);
    }) ?? findWritable(directory, trusted);
  if (found === undefined) {
    return;
  }
  throw new Failure(
    `other users can change ${found}, which a service installed by root would run: \`chown -R\` ${directory} to root or to your user and \`chmod -R go-w\` it, or use a checkout that only you can write to.`,
  );
}

function ancestorsOf(directory: string): readonly string[] {
  const parent = dirname(directory);
  return parent === directory ? [] : [...ancestorsOf(parent), parent];
}

function findWritable(path: string, trusted: Trusted): string | undefined {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  // A checkout in use changes meanwhile; what is gone cannot be run.
  if (stats === undefined) {
    return undefined;
  }
  if (isWritable(stats, trusted)) {
    return path;
  }
  for (const name of stats.isDirectory() ? listDirectory(path) : []) {
    if (name === SKIPPED) {
      continue;
    }
    const found = findWritable(join(path, name), trusted);
    if (found !== undefined) {
      return found;
    }
  }
  return undefined;
}

function isWritable(stats: Stats, { users, groups }: Trusted): boolean {
  const { uid, gid, mode } = stats;
  if (!users.has(uid)) {
    return true;
  }
  // The mode of a symbolic link is not used.
  if (stats.isSymbolicLink()) {
    return false;
  }
  return (mode & 0o002) !== 0 || ((mode & 0o020) !== 0 && !groups.has(gid));
}
