/** What forcing a compaction means, for whoever asks: the command line and the page of the job. */
export const forceWords = {
  label: "In spite of many open conflicts",
  note: "They can then no longer be merged by themselves.",
} as const;
