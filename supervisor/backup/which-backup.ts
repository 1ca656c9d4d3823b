import { Failure } from "../../core/failure.ts";
import type { JobOption } from "../jobs/job.ts";
import { listBackups } from "./manifest.ts";

/** Asks for one of the backups in a directory. */
export function whichBackup(directory: string): JobOption {
  return {
    name: "backup",
    kind: "choice",
    label: "Backup",
    values: () => listBackups(directory),
    otherwise: "the newest",
  };
}

/** The backup of this name; the newest without one. */
export function chooseBackup(
  directory: string,
  asked: string | undefined,
): string {
  const names = listBackups(directory);
  const name = asked ?? names[0];
  if (name === undefined) {
    throw new Failure(
      `no backup in ${directory}: fetch one from the other host with \`hearth backup fetch\`, or copy one there.`,
    );
  }
  if (!names.includes(name)) {
    throw new Failure(
      `backup "${name}" not found; there are ${names.slice(0, 5).join(", ")}${names.length > 5 ? " …" : ""}.`,
    );
  }
  return name;
}
