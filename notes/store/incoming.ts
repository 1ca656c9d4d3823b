import { isUtf8 } from "node:buffer";
import { Refusal } from "../refusal.ts";
import { parseRevision, type Revision } from "./revisions.ts";
import { INCOMPLETE, scanObject, scanValue, type Member } from "./scan-json.ts";

/** A document as a client sent it: its special members read, the others kept as the bytes they came in. */
export interface IncomingDocument {
  readonly id: string | undefined;
  readonly rev: Revision | undefined;
  readonly deleted: boolean;
  /** The history as the client tells it, newest hash first; `start` is the newest one's generation. */
  readonly history:
    { readonly start: number; readonly ids: string[] } | undefined;
  /** The ordinary members as JSON, separated by commas, without the braces. */
  readonly body: Buffer;
  /** The member `type` if it is a string: what LiveSync's pull selects by. */
  readonly type: string | undefined;
}

export const invalidJson = (): Refusal =>
  new Refusal("bad_request", "invalid UTF-8 JSON");

const NO_MEMBERS = Buffer.alloc(0);

const ignoredSpecials = new Set([
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

/** Reads one document from the whole of `bytes`. */
export function readDocument(bytes: Buffer): IncomingDocument {
  const { document, end } = readDocumentAt(bytes, spaceBefore(bytes), true);
  if (document === undefined || !onlySpace(bytes, end)) throw invalidJson();
  return document;
}

/** Reads the document that starts at `at`; no document when more bytes are needed. */
export function readDocumentAt(
  bytes: Buffer,
  at: number,
  final: boolean,
): { readonly document: IncomingDocument | undefined; readonly end: number } {
  if (at < bytes.length && bytes[at] !== 0x7b) {
    const end = scanValue(bytes, at, final);
    if (end === INCOMPLETE) return { document: undefined, end };
    if (end < 0) throw invalidJson();
    throw new Refusal("bad_request", "Document must be a JSON object");
  }
  const members: Member[] = [];
  const end =
    at >= bytes.length
      ? scanValue(bytes, at, final)
      : scanObject(bytes, at, final, 0, members);
  if (end === INCOMPLETE) return { document: undefined, end };
  if (end < 0 || !isUtf8(bytes.subarray(at, end))) throw invalidJson();
  return { document: documentOf(bytes, members), end };
}

function documentOf(bytes: Buffer, members: Member[]): IncomingDocument {
  const specials = new Map<string, unknown>();
  const ordinary = new Map<string, Member>();
  for (const member of members) {
    const key = keyOf(bytes, member);
    if (key.startsWith("_")) {
      specials.set(
        key,
        JSON.parse(bytes.toString("utf8", member.valueStart, member.valueEnd)),
      );
    } else {
      // The last of two members of the same name counts.
      ordinary.delete(key);
      ordinary.set(key, member);
    }
  }
  const id = readId(specials.get("_id"));
  const type = ordinary.get("type");
  const document = {
    id,
    rev: readRev(specials.get("_rev")),
    deleted: specials.get("_deleted") === true,
    history: readHistory(specials.get("_revisions")),
    body: joinMembers(bytes, [...ordinary.values()]),
    type:
      type !== undefined && bytes[type.valueStart] === 0x22
        ? (JSON.parse(
            bytes.toString("utf8", type.valueStart, type.valueEnd),
          ) as string)
        : undefined,
  };
  checkSpecials(specials);
  return document;
}

function keyOf(bytes: Buffer, member: Member): string {
  const quoted = bytes.toString("utf8", member.keyStart, member.keyEnd);
  return quoted.includes("\\")
    ? (JSON.parse(quoted) as string)
    : quoted.slice(1, -1);
}

function joinMembers(bytes: Buffer, members: readonly Member[]): Buffer {
  if (members.length === 0) return NO_MEMBERS;
  const pieces: Buffer[] = [];
  for (const [index, member] of members.entries()) {
    if (index > 0) pieces.push(COMMA);
    pieces.push(
      bytes.subarray(member.keyStart, member.keyEnd),
      COLON,
      bytes.subarray(member.valueStart, member.valueEnd),
    );
  }
  return Buffer.concat(pieces);
}

const COMMA = Buffer.from(",");
const COLON = Buffer.from(":");

function checkSpecials(specials: ReadonlyMap<string, unknown>): void {
  for (const [name, value] of specials) {
    switch (name) {
      case "_id":
      case "_rev":
      case "_revisions":
      case "_deleted":
        break;
      case "_attachments":
        if (value !== null && Object.keys(value as object).length > 0) {
          throw new Refusal(
            "not_implemented",
            "This notes store keeps no attachments. Put the content into a member of the document.",
          );
        }
        break;
      default:
        if (!ignoredSpecials.has(name)) {
          throw new Refusal(
            "doc_validation",
            `Bad special document member: ${name}`,
          );
        }
    }
  }
}

function readId(id: unknown): string | undefined {
  if (id === undefined) return undefined;
  if (typeof id !== "string") {
    throw new Refusal("illegal_docid", "Document id must be a string");
  }
  return id;
}

function readRev(rev: unknown): Revision | undefined {
  if (rev === undefined || rev === null || rev === "") return undefined;
  return parseRevision(rev);
}

function readHistory(value: unknown): IncomingDocument["history"] {
  if (value === undefined) return undefined;
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
  return ids.length === 0
    ? undefined
    : { start: start as number, ids: ids as string[] };
}

/** Position of the first byte of the value. */
export function spaceBefore(bytes: Buffer): number {
  let at = 0;
  while (
    at < bytes.length &&
    " \n\r\t".includes(String.fromCharCode(bytes[at]!))
  ) {
    at += 1;
  }
  return at;
}

/** Whether nothing but white space follows. */
export function onlySpace(bytes: Buffer, at: number): boolean {
  return bytes.toString("latin1", at).trim() === "";
}
