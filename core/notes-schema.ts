/** The schema of a vault's file (notes/store/schema.ts), stored in it as `user_version`. */
export const NOTES_SCHEMA_VERSION = 1;
