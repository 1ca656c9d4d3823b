/** Runs tasks one after the other, in the order of the requests. */
export type Turns = <T>(work: () => Promise<T>) => Promise<T>;

export function takeTurns(): Turns {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const mine = last.then(work, work);
    last = mine.catch(() => {});
    return mine;
  };
}
