/** A database that had trouble. */
export interface Incident {
  readonly database: string;
  /** In ISO 8601. */
  readonly at: string;
}

/** The latest incident of each database since this process started. */
export interface LatestIncidents {
  readonly add: (database: string) => void;
  readonly latest: () => readonly Incident[];
}

export function openLatestIncidents(): LatestIncidents {
  const MAX = 20;
  let incidents: readonly Incident[] = [];
  return {
    add: (database) => {
      const at = new Date().toISOString();
      const others = incidents.filter((each) => each.database !== database);
      incidents = [...others, { database, at }].slice(-MAX);
    },
    latest: () => incidents,
  };
}
