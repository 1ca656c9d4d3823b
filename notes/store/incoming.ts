import { isUtf8 } from "node:buffer";
import { noAttachments, Refusal } from "../refusal.ts";
import {
  invalidRevision,
  isHash,
  parseRevision,
  type Revision,
} from "./revisions.ts";
import {
  INCOMPLETE,
  MAX_MEMBERS,
  scanObject,
  scanValue,
  TOO_MANY_MEMBERS,
  type Member,
} from "./scan-json.ts";

/** A document as a client sent it: its special members parsed, the others as the bytes received. */
export interface IncomingDocument {
  readonly id: string | undefined;
  readonly rev: Revision | undefined;
  readonly deleted: boolean;
  /** The history as sent by the client, newest hash first; `start` is the newest one's generation. */
  readonly history:
    { readonly start: number; readonly ids: string[] } | undefined;
  /** The ordinary members as JSON, separated by commas, without the braces. */
  readonly body: Buffer;
  /** The member `type` if it is a string: LiveSync's pull selects by it. */
  readonly type: string | undefined;
}

export const invalidJson = (): Refusal =>
  new Refusal("bad_request", "invalid UTF-8 JSON");

const NO_MEMBERS = Buffer.alloc(0);

/** A longer special member is not parsed: its values could take many times its bytes in memory. */
const MAX_SPECIAL_BYTES = 1_000_000;

const IGNORED_SPECIALS = new Set([
  "_revs_info",
  "_conflicts",
  "_deleted_conflicts",
  "_local_seq",
  "_replication_id",
  "_replication_state",
  "_replication_state_time",
  "_replication_state_reason",
  "_replication_stats",
]);

/** Reads one document from all of `bytes` and takes ownership of them. */
export function readDocument(bytes: Buffer): IncomingDocument {
  const found = membersAt(bytes, spaceBefore(bytes), true);
  if (found === undefined || !onlySpace(bytes, found.end)) {
    throw invalidJson();
  }
  const { head, ordinary, hasAttachments } = headOf(bytes, found.members);
  if (hasAttachments) {
    throw noAttachments();
  }
  return { ...head, body: joinMembers(bytes, ordinary) };
}

/** The id and the end of a document, and the bytes of its body. */
interface InspectedDocument {
  readonly id: string | undefined;
  readonly size: number;
  readonly end: number;
}

/** Scans the document that starts at `at`; undefined when more bytes are needed. One with attachments is rejected when it is read. */
export function inspectDocumentAt(
  bytes: Buffer,
  at: number,
  final: boolean,
): InspectedDocument | undefined {
  const found = membersAt(bytes, at, final);
  if (found === undefined) {
    return undefined;
  }
  const { head, ordinary } = headOf(bytes, found.members);
  return { id: head.id, size: sizeOf(ordinary), end: found.end };
}

function membersAt(
  bytes: Buffer,
  at: number,
  final: boolean,
): { readonly members: Member[]; readonly end: number } | undefined {
  if (at < bytes.length && bytes[at] !== 0x7b) {
    const end = scanValue(bytes, at, final);
    if (end === INCOMPLETE) {
      return undefined;
    }
    if (end < 0) {
      throw invalidJson();
    }
    throw new Refusal("bad_request", "Document must be a JSON object");
  }
  const members: Member[] = [];
  const end =
    at >= bytes.length
      ? scanValue(bytes, at, final)
      : scanObject(bytes, at, final, 0, members);
  if (end === INCOMPLETE) {
    return undefined;
  }
  if (end === TOO_MANY_MEMBERS) {
    throw new Refusal(
      "document_too_large",
      `A document may have at most ${MAX_MEMBERS} members; split it into several documents.`,
    );
  }
  if (end < 0 || !isUtf8(bytes.subarray(at, end))) {
    throw invalidJson();
  }
  return { members, end };
}

function headOf(
  bytes: Buffer,
  members: readonly Member[],
): {
  readonly head: Omit<IncomingDocument, "body">;
  readonly ordinary: readonly Member[];
  readonly hasAttachments: boolean;
} {
  const specials = new Map<string, Member>();
  const ordinary = new Map<string, Member>();
  for (const member of members) {
    const key = keyOf(bytes, member);
    if (key.startsWith("_")) {
      specials.set(key, member);
    } else {
      // Of duplicate members the last one counts.
      ordinary.delete(key);
      ordinary.set(key, member);
    }
  }
  const special = (name: string): unknown => {
    const member = specials.get(name);
    if (member === undefined) {
      return undefined;
    }
    if (isLong(member)) {
      throw new Refusal(
        "document_too_large",
        `The member ${name} is longer than 1 MB; shorten it.`,
      );
    }
    return valueOf(bytes, member);
  };
  const type = ordinary.get("type");
  const head = {
    id: readId(special("_id")),
    rev: readRev(special("_rev")),
    deleted: special("_deleted") === true,
    history: readHistory(special("_revisions")),
    type:
      type !== undefined && bytes[type.valueStart] === 0x22
        ? (valueOf(bytes, type) as string)
        : undefined,
  };
  checkSpecials(specials);
  const attachments = specials.get("_attachments");
  return {
    head,
    ordinary: [...ordinary.values()],
    hasAttachments:
      attachments !== undefined &&
      (isLong(attachments) ||
        Object.keys(valueOf(bytes, attachments) ?? {}).length > 0),
  };
}

function isLong({ valueStart, valueEnd }: Member): boolean {
  return valueEnd - valueStart > MAX_SPECIAL_BYTES;
}

function valueOf(bytes: Buffer, { valueStart, valueEnd }: Member): unknown {
  return JSON.parse(bytes.toString("utf8", valueStart, valueEnd));
}

function keyOf(bytes: Buffer, member: Member): string {
  const quoted = bytes.toString("utf8", member.keyStart, member.keyEnd);
  return quoted.includes("\\")
    ? (JSON.parse(quoted) as string)
    : quoted.slice(1, -1);
}

function sizeOf(members: readonly Member[]): number {
  const SIGNS = 2;
  const sum = members.reduce(
    (size, { keyStart, keyEnd, valueStart, valueEnd }) =>
      size + keyEnd - keyStart + valueEnd - valueStart + SIGNS,
    0,
  );
  return Math.max(0, sum - 1);
}

/** Compacts the members within `bytes`, which callers must not use afterwards: a body of 50 MB is not copied. */
function joinMembers(bytes: Buffer, members: readonly Member[]): Buffer {
  const [first] = members;
  if (first === undefined) {
    return NO_MEMBERS;
  }
  let end = first.keyStart;
  const move = (from: number, to: number): void => {
    if (from !== end) {
      bytes.copyWithin(end, from, to);
    }
    end += to - from;
  };
  for (const member of members) {
    if (member !== first) {
      bytes[end++] = COMMA;
    }
    move(member.keyStart, member.keyEnd);
    bytes[end++] = COLON;
    move(member.valueStart, member.valueEnd);
  }
  return bytes.subarray(first.keyStart, end);
}

const COMMA = 0x2c;
const COLON = 0x3a;

function checkSpecials(specials: ReadonlyMap<string, unknown>): void {
  for (const name of specials.keys()) {
    switch (name) {
      case "_id":
      case "_rev":
      case "_revisions":
      case "_deleted":
      case "_attachments":
        break;
      default:
        if (!IGNORED_SPECIALS.has(name)) {
          throw new Refusal(
            "doc_validation",
            `Bad special document member: ${name}`,
          );
        }
    }
  }
}

function readId(id: unknown): string | undefined {
  if (id === undefined) {
    return undefined;
  }
  if (typeof id !== "string") {
    throw new Refusal("illegal_docid", "Document id must be a string");
  }
  return id;
}

function readRev(rev: unknown): Revision | undefined {
  if (rev === undefined || rev === null || rev === "") {
    return undefined;
  }
  return parseRevision(rev);
}

function readHistory(value: unknown): IncomingDocument["history"] {
  if (value === undefined) {
    return undefined;
  }
  const { start, ids } = (value ?? {}) as { start?: unknown; ids?: unknown };
  if (!Number.isSafeInteger(start)) {
    throw new Refusal("doc_validation", "_revisions.start isn't an integer.");
  }
  if (!Array.isArray(ids)) {
    throw new Refusal("doc_validation", "_revisions.ids isn't a array.");
  }
  if (!ids.every((id) => typeof id === "string")) {
    throw new Refusal("doc_validation", "RevId isn't a string");
  }
  if (!ids.every(isHash)) {
    throw invalidRevision();
  }
  return ids.length === 0
    ? undefined
    : { start: start as number, ids: ids as string[] };
}

/** Position of the first byte of the value. */
function spaceBefore(bytes: Buffer): number {
  let at = 0;
  while (
    at < bytes.length &&
    " \n\r\t".includes(String.fromCharCode(bytes[at]!))
  ) {
    at += 1;
  }
  return at;
}

/** Whether only white space follows. */
export function onlySpace(bytes: Buffer, at: number): boolean {
  return bytes.toString("latin1", at).trim() === "";
}
