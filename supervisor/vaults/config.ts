import { z } from "zod";
import { duration, webAddress, whole } from "../config/fields.ts";
import { checkVaultName } from "./vault-names.ts";

const vaultName = z.string("must be a vault name or off").refine((text) => {
  try {
    return text === "off" || checkVaultName(text) === text;
  } catch {
    return false;
  }
}, "must be off or a vault name: a lower-case letter, then lower-case letters, digits and _ $ ( ) + -");

/** `notes:` of the configuration; parsed durations are in milliseconds. */
export const notesSchema = z
  .strictObject({
    public_url: webAddress.optional(),
    first_vault: vaultName.default("notes"),
    mass_deletion: z
      .strictObject({
        least: whole(1, 1_000_000).default(25),
        percent: whole(1, 100).default(10),
        within: duration.prefault("1h"),
      })
      .prefault({}),
    conflicts_alarm_after: duration.prefault("7d"),
  })
  .prefault({});
