import { openSource } from "./body-source.ts";
import { readDocument, type IncomingDocument } from "./incoming.ts";
import type { StoreRequest } from "./protocol.ts";

let lastTurn: Promise<unknown> = Promise.resolve();

/** Runs writes of long bodies one at a time: one of them is in memory, however many devices push. Short ones are in memory already. */
export async function inBodyTurn<T>(
  { body }: StoreRequest,
  write: () => Promise<T>,
): Promise<T> {
  if (body?.kind !== "file") {
    return await write();
  }
  const turn = lastTurn.then(write);
  lastTurn = turn.catch(() => undefined);
  return await turn;
}

/** Writes the document of a body, whose bytes are freed afterwards. */
export async function writingDocument<T>(
  request: StoreRequest,
  write: (document: IncomingDocument) => Promise<T>,
): Promise<T> {
  return await inBodyTurn(request, async () => {
    const source = openSource(request.body);
    try {
      const bytes = source.read(0, source.length);
      try {
        return await write(readDocument(bytes));
      } finally {
        source.free(bytes);
      }
    } finally {
      source.close();
    }
  });
}
