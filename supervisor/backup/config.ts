import { z } from "zod";
import { size } from "../config/fields.ts";

/** `backups:` of the configuration. */
export const backupsSchema = z
  .strictObject({
    /** Limit of this host's own backups, and again at the off-site target. */
    at_most: size.prefault("200GB"),
  })
  .prefault({});
