import { z } from "zod";
import type { Alarms } from "../alerts/alarm.ts";
import type { SupervisorConfig } from "../config/schema.ts";
import { Failure } from "../../core/failure.ts";
import type { Couch } from "./couch.ts";
import type { NotesState } from "./notes-state.ts";
import type { EscrowFiles } from "./seed-escrow.ts";
import type { VaultFiles } from "./vault-file.ts";

/** What the jobs about the notes store work with. */
export interface NotesJobParts {
  readonly couch: Couch;
  readonly state: NotesState;
  readonly escrow: EscrowFiles;
  readonly files: VaultFiles;
  readonly alarms: Alarms;
  readonly config: SupervisorConfig;
  /** `backups/notes`. */
  readonly backups: string;
  /** Bytes that are free where the store and the backups lie. */
  readonly freeBytes: () => number;
  /** Vaults that are being restored. */
  readonly busy: Set<string>;
  /** Where devices reach the store unless a vault's file says otherwise. */
  readonly address: () => string;
}

/** Options as a person gave them with a job; throws a Failure that names the first mistake. */
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
    `${issue?.path.join(".") || "the options"}: ${issue?.message ?? "cannot be read"}.`,
  );
}
