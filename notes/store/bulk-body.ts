import { dictionary } from "../dictionary.ts";
import { Refusal } from "../refusal.ts";
import { openSource, type BodySource } from "./body-source.ts";
import { BodyWindow, type BulkEntry } from "./body-window.ts";
import { invalidJson } from "./incoming.ts";
import type { Body } from "./protocol.ts";

const [BRACE, END_BRACE, BRACKET, END_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d];
const [COLON, COMMA, QUOTE] = [0x3a, 0x2c, 0x22];

/**
 * Maximum documents of a request, and characters of their ids: both are in memory until the last document is written. At both
 * limits the store takes less than 300 MB. Clients send some hundred documents at a time: PouchDB 100, Self-hosted LiveSync 200,
 * couchbackup 500.
 */
const MAX_DOCUMENTS = 50_000;
const MAX_IDS_LENGTH = 8_000_000;

interface BulkBody {
  readonly entries: readonly BulkEntry[];
  readonly newEdits: boolean;
  readonly close: () => void;
}

/** Scans a `_bulk_docs` body without loading all of it: each document is checked, and read again when it is written. */
export async function readBulkBody(
  body: Body | undefined,
  maxDocumentSize: number,
  breathe: () => Promise<void>,
): Promise<BulkBody> {
  const source = openSource(body);
  try {
    return {
      ...(await scan(source, maxDocumentSize, breathe)),
      close: source.close,
    };
  } catch (failure) {
    source.close();
    throw failure;
  }
}

async function scan(
  source: BodySource,
  maxDocumentSize: number,
  breathe: () => Promise<void>,
): Promise<Omit<BulkBody, "close">> {
  const window = new BodyWindow(source, maxDocumentSize);
  let entries: BulkEntry[] | undefined;
  const options = dictionary({ new_edits: "true", all_or_nothing: "false" });

  if (window.peek() !== BRACE) {
    window.value();
    throw new Refusal("bad_request", "Request body must be a JSON object");
  }
  window.skip();
  let more = window.peek() !== END_BRACE;
  while (more) {
    const key = window.value().toString();
    if (!key.startsWith('"') || window.peek() !== COLON) {
      throw invalidJson();
    }
    window.skip();
    const name = JSON.parse(key) as string;
    if (name === "docs") {
      // As with any member of a JSON object, the last one counts.
      entries = await scanDocuments(window, breathe);
    } else {
      const value = window.value();
      if (name in options) {
        options[name] = value.toString();
      }
    }
    more = window.peek() === COMMA;
    if (more) {
      window.skip();
      if (window.peek() !== QUOTE) {
        throw invalidJson();
      }
    }
  }
  if (window.peek() !== END_BRACE) {
    throw invalidJson();
  }
  window.skip();
  window.expectEnd();
  window.release();
  return checked(entries, options);
}

function checked(
  entries: BulkEntry[] | undefined,
  options: Readonly<Record<string, string>>,
): Omit<BulkBody, "close"> {
  const { new_edits: newEdits, all_or_nothing: allOrNothing } = options;
  if (entries === undefined) {
    throw new Refusal(
      "bad_request",
      "POST body must include `docs` parameter.",
    );
  }
  if (newEdits !== "true" && newEdits !== "false") {
    throw new Refusal(
      "bad_request",
      "`new_edits` parameter must be a boolean.",
    );
  }
  if (allOrNothing === "true" && entries.length > 0) {
    throw new Refusal(
      "not_implemented",
      "all_or_nothing is not supported: each document of a request is written or rejected separately.",
    );
  }
  return { entries, newEdits: newEdits === "true" };
}

async function scanDocuments(
  window: BodyWindow,
  breathe: () => Promise<void>,
): Promise<BulkEntry[]> {
  const entries: BulkEntry[] = [];
  let idsLength = 0;
  if (window.peek() === undefined) {
    throw invalidJson();
  }
  if (window.peek() !== BRACKET) {
    throw new Refusal("bad_request", "`docs` parameter must be an array.");
  }
  window.skip();
  while (window.peek() !== END_BRACKET) {
    const entry = window.document();
    entries.push(entry);
    idsLength += entry.id?.length ?? 0;
    if (entries.length > MAX_DOCUMENTS || idsLength > MAX_IDS_LENGTH) {
      throw new Refusal(
        "too_large",
        `A request may contain at most ${MAX_DOCUMENTS} documents and ${MAX_IDS_LENGTH} characters of ids; send the documents in several requests.`,
      );
    }
    await breathe();
    if (window.peek() === COMMA) {
      window.skip();
      if (window.peek() === END_BRACKET) {
        throw invalidJson();
      }
    } else if (window.peek() !== END_BRACKET) {
      throw invalidJson();
    }
  }
  window.skip();
  return entries;
}
