import { AsyncLocalStorage } from "node:async_hooks";

/** The author of changes with the operator password or by a command. */
export const OPERATOR = "operator";

const authors = new AsyncLocalStorage<string>();

/** Runs `act`; changes within it are recorded as made by `author`. */
export function actAs<Result>(author: string, act: () => Result): Result {
  return authors.run(author, act);
}

/** Who makes the current change: OPERATOR, or a user such as `anna@example.org (authelia)`. */
export function currentAuthor(): string {
  return authors.getStore() ?? OPERATOR;
}

/** The same within a sentence: "requested by the operator". */
export function byAuthor(): string {
  const author = currentAuthor();
  return author === OPERATOR ? "by the operator" : `by ${author}`;
}

/** What was changed, with the author unless that is the operator: "silence ended, by anna@example.org (authelia)". */
export function withAuthor(change: string): string {
  if (currentAuthor() === OPERATOR) {
    return change;
  }
  return `${change.replace(/\.$/, "")}, ${byAuthor()}${change.endsWith(".") ? "." : ""}`;
}
