/** The folders with source, lowest first: see .dependency-cruiser.mjs. */
export const FOLDERS = [
  "core",
  "gateway",
  "notes",
  "supervisor",
  "console",
  "embedded",
  "cli",
  "infra",
  "scripts",
  "test",
];
