/** A request may use several of the connections to Postgres at once; there are five by default, which the ledger uses too. */
const MAX_AT_ONCE = 2;

/** Requests of one user: how many run, and what starts the next ones. */
interface Line {
  running: number;
  readonly waiting: (() => void)[];
}

/**
 * Lets few requests of a user run at once, and the others wait for them: many slow reports of one user would take all connections
 * to the database, and admins and the ledger would find it unavailable.
 */
export class Turns {
  readonly #lines = new Map<string, Line>();

  async take<T>(user: string, work: () => Promise<T>): Promise<T> {
    const line = this.#lines.get(user) ?? { running: 0, waiting: [] };
    this.#lines.set(user, line);
    if (line.running < MAX_AT_ONCE) {
      line.running++;
    } else {
      await new Promise<void>((start) => line.waiting.push(start));
    }
    try {
      return await work();
    } finally {
      const next = line.waiting.shift();
      if (next !== undefined) {
        next();
      } else if (--line.running === 0) {
        this.#lines.delete(user);
      }
    }
  }
}
