import type { JobOption } from "../jobs/job.ts";
import { listBackups } from "./manifest.ts";

/** Asks for one of the backups in a directory. */
export function whichBackup(directory: string): JobOption {
  return {
    ...{ name: "backup", kind: "choice", label: "Backup" },
    values: () => listBackups(directory),
    otherwise: "the newest",
  };
}
