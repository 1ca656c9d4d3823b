import { isCancel } from "@clack/prompts";

/** The answer to a prompt. Throws after Ctrl-C. */
export function given<T>(answer: T): Exclude<T, symbol> {
  if (isCancel(answer)) {
    throw new Error("canceled; nothing was changed.");
  }
  return answer as Exclude<T, symbol>;
}
