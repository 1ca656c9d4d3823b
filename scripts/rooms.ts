/** The folders with source, those below first: see .dependency-cruiser.mjs. */
export const ROOMS = [
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
