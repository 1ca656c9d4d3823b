import { SCRIPTS } from "../../gateway/limits/scripts.ts";
import type { Wire } from "./relay.ts";

const SCRIPT_OF = new Map(
  Object.entries(SCRIPTS).map(([name, { sha }]) => [sha, name]),
);

/** Splits Redis' protocol into messages and recognises the script of each EVALSHA (`admit`, `settle`, `assign`, …). */
export function redisWire(): Wire {
  return {
    nextRequest(bytes) {
      const length = endOf(bytes, 0);
      if (length === null) {
        return null;
      }
      return { length, point: scriptIn(bytes, length), answers: 1 };
    },
    nextAnswer(bytes) {
      const length = endOf(bytes, 0);
      return length === null ? null : { length, ends: true };
    },
  };
}

function scriptIn(bytes: Buffer, length: number): string | null {
  const head = bytes.toString("latin1", 0, Math.min(length, 100)).split("\r\n");
  if (head[2]?.toUpperCase() !== "EVALSHA") {
    return null;
  }
  return SCRIPT_OF.get(head[4] ?? "") ?? null;
}

/** The end of one RESP value; null while it is incomplete. */
function endOf(bytes: Buffer, from: number): number | null {
  const line = bytes.indexOf("\r\n", from);
  if (line < 0) {
    return null;
  }
  const after = line + 2;
  const count = Number(bytes.toString("latin1", from + 1, line));
  switch (String.fromCharCode(bytes[from] ?? 0)) {
    case "$": {
      if (count < 0) {
        return after;
      }
      const end = after + count + 2;
      return bytes.length < end ? null : end;
    }
    case "*": {
      let end: number | null = after;
      for (let item = 0; item < count && end !== null; item++) {
        end = endOf(bytes, end);
      }
      return end;
    }
    default:
      return after;
  }
}
