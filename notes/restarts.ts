/** A database whose thread hung and was terminated. */
export interface Restart {
  readonly database: string;
  /** In ISO 8601. */
  readonly at: string;
}

/** The latest restarts of this process. */
export interface Restarts {
  readonly add: (database: string) => void;
  readonly latest: () => readonly Restart[];
}

export function openRestarts(): Restarts {
  const MAX = 20;
  let restarts: readonly Restart[] = [];
  return {
    add: (database) => {
      const at = new Date().toISOString();
      restarts = [...restarts, { database, at }].slice(-MAX);
    },
    latest: () => restarts,
  };
}
