import { expect, test } from "vitest";
import type { Couch } from "./couch.ts";
import { openHistory } from "./history-source.ts";

test("a restore asks for the state of many chunks at once, and reads few deleted ones at once", async () => {
  const ids = Array.from({ length: 3000 }, (_, at) => `h:${at}`);
  const deleted = new Set(ids.slice(0, 20));
  const restored: string[] = [];
  const requests = new Map<string, number>();
  const ask: Couch["ask"] = async (_method, path, { body } = {}) => {
    requests.set(path, (requests.get(path) ?? 0) + 1);
    const { keys, chunks, docs } = body as {
      keys: string[];
      chunks: string[];
      docs: { _id: string }[];
    };
    switch (path) {
      case "/vault/_all_docs":
        return {
          rows: keys.map((id) => ({ id, value: { deleted: deleted.has(id) } })),
        };
      case "/vault/_history?":
        return {
          rows: chunks.map((_id) => ({ _id, _rev: "1-a", data: "text" })),
        };
      default:
        restored.push(...docs.map(({ _id }) => _id));
        return [];
    }
  };
  await openHistory({ ask } as Couch, "vault").write([], ids);
  expect(restored).toEqual([...deleted]);
  expect(Object.fromEntries(requests)).toEqual({
    "/vault/_all_docs": 3,
    "/vault/_history?": 5,
    // The last one writes the notes.
    "/vault/_bulk_docs": 6,
  });
});
