/** The folders with source, lowest first: see .dependency-cruiser.mjs. */
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
