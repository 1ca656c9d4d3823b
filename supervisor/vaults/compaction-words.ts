/** The option to force a compaction, as the CLI and the job's page describe it. */
export const forceWords = {
  label: "Compact despite open conflicts",
  note: "They can no longer be merged automatically afterwards.",
} as const;
