import type { Frame, Wire } from "./relay.ts";

const TYPE_AND_LENGTH = 5;

/** Splits Postgres' protocol into messages and recognises the statements that write spend to the ledger. */
export function postgresWire(): Wire {
  let started = false;
  return {
    nextRequest(bytes) {
      // The first message has no type in front of its length.
      const head = started ? 1 : 0;
      if (bytes.length < head + 4) {
        return null;
      }
      const length = head + bytes.readInt32BE(head);
      if (bytes.length < length) {
        return null;
      }
      const frame = started
        ? request(bytes.subarray(0, length))
        : { length, point: null, answers: 1 };
      started = true;
      return frame;
    },
    nextAnswer(bytes) {
      if (bytes.length < TYPE_AND_LENGTH) {
        return null;
      }
      const length = 1 + bytes.readInt32BE(1);
      if (bytes.length < length) {
        return null;
      }
      const ready = String.fromCharCode(bytes[0] ?? 0) === "Z";
      return { length, ends: ready };
    },
  };
}

/** Each simple query, and each Sync after an extended one, is answered by one ReadyForQuery. */
function request(frame: Buffer): Frame {
  const { length } = frame;
  const type = String.fromCharCode(frame[0] ?? 0);
  const text = frame.subarray(TYPE_AND_LENGTH);
  switch (type) {
    case "Q":
      return {
        length,
        point: /^COMMIT/i.test(text.toString("latin1", 0, 6)) ? "commit" : null,
        answers: 1,
      };
    case "P":
      return {
        length,
        point: text.includes("INSERT INTO spend_log") ? "insert" : null,
        answers: 0,
      };
    case "S":
      return { length, point: null, answers: 1 };
    default:
      return { length, point: null, answers: 0 };
  }
}
