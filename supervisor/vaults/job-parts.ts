import { z } from "zod";
import type { Alarms } from "../alerts/alarm.ts";
import type { SupervisorConfig } from "../config/schema.ts";
import { Failure } from "../../core/failure.ts";
import type { Couch } from "./couch.ts";
import type { NotesState } from "./notes-state.ts";
import type { EscrowFiles } from "./seed-escrow.ts";
import type { VaultFiles } from "./vault-file.ts";

/** Dependencies of the notes store's jobs. */
export interface NotesJobParts {
  readonly couch: Couch;
  readonly state: NotesState;
  readonly escrow: EscrowFiles;
  readonly files: VaultFiles;
  readonly alarms: Alarms;
  readonly config: SupervisorConfig;
  /** `backups/notes`. */
  readonly backups: string;
  /** Free bytes on the file system of the store and the backups. */
  readonly freeBytes: () => number;
  /** Vaults that are being restored. */
  readonly busy: Set<string>;
  /** The store's address for devices unless a vault's file sets another. */
  readonly address: () => string;
}

/** The parsed options of a job; throws a Failure with the first error. */
export function optionsOf<T extends z.ZodType>(
  schema: T,
  options: unknown,
): z.output<T> {
  const parsed = schema.safeParse(options);
  if (parsed.success) {
    return parsed.data;
  }
  const issue = parsed.error.issues[0];
  throw new Failure(
    `${issue?.path.join(".") || "options"}: ${issue?.message ?? "invalid"}.`,
  );
}
