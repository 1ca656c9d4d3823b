import { z } from "zod";
import { size } from "../config/fields.ts";

/** `backups:` of the configuration. */
export const backupsSchema = z
  .strictObject({
    /** Of this host's own backups; at the target of off-site backups once more. */
    at_most: size.prefault("200GB"),
  })
  .prefault({});
