import { Failure } from "../../core/failure.ts";
import type { JobOption } from "../jobs/job.ts";
import { listBackups, rankBackups } from "./manifest.ts";

/** A form field to choose one of the backups in a directory. */
export function whichBackup(directory: string): JobOption {
  return {
    name: "backup",
    kind: "choice",
    label: "Backup",
    values: () => listBackups(directory),
    otherwise: "the newest",
  };
}

const COMMANDS = {
  postgres: "hearth backup run",
  notes: "hearth notes backup",
} as const;

/** For messages about a machine without backups. */
export const WHERE_TO_FETCH =
  "`hearth offsite fetch` from the off-site target, `hearth backup fetch` from the other host of a stack";

/** The backup of this name; defaults to the newest. `kind` is that of the backups in the directory. */
export function chooseBackup(
  kind: keyof typeof COMMANDS,
  directory: string,
  requested: string | undefined,
  now: number,
): string {
  const names = rankBackups(listBackups(directory), now);
  const [newest] = names;
  if (newest === undefined) {
    const lead =
      requested === undefined ? "" : `backup "${requested}" not found; `;
    throw new Failure(
      `${lead}there are no backups in ${directory}. Run \`${COMMANDS[kind]}\` to create one, or fetch one: ${WHERE_TO_FETCH}.`,
    );
  }
  const name = requested ?? newest;
  if (!names.includes(name)) {
    throw new Failure(
      `backup "${name}" not found; available: ${names.slice(0, 5).join(", ")}${names.length > 5 ? " …" : ""}.`,
    );
  }
  return name;
}
