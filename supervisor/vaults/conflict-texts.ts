import { z } from "zod";
import type { CouchDocument, Database } from "./database.ts";
import { isEncryptedPath } from "./livesync.ts";

/** The content of a version of a note, as far as it is readable on the server. */
export type NoteText =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "encrypted" | "deleted" | "binary" | "large" }
  /** Some of its chunks have not arrived yet. */
  | { readonly kind: "incomplete" };

export type TextOfVersion = { readonly rev: string } & NoteText;

/** Longer texts cannot be displayed side by side. */
const MAX_TEXT_LENGTH = 200_000;
const MAX_CHUNKS = 200;

const metadata = z.looseObject({
  type: z.string().default(""),
  path: z.string().default(""),
  size: z.number().default(0),
  deleted: z.boolean().default(false),
  children: z.array(z.string()).default([]),
  /** Chunks embedded in the document itself. */
  eden: z.record(z.string(), z.looseObject({ data: z.string() })).default({}),
});
const chunk = z.looseObject({
  _id: z.string(),
  data: z.string(),
  e_: z.boolean().default(false),
});

/** The texts of a note's versions, without those that no longer exist. */
export async function readTexts(
  database: Database,
  document: string,
  revs: readonly string[],
): Promise<readonly TextOfVersion[]> {
  const versions = await database.revisions(
    revs.map((rev) => ({ id: document, rev })),
  );
  return Promise.all(
    versions.map(async (version) => ({
      rev: version._rev,
      ...(await textOf(database, version)),
    })),
  );
}

async function textOf(
  database: Database,
  version: CouchDocument,
): Promise<NoteText> {
  const parsed = metadata.safeParse(version);
  if (!parsed.success || parsed.data.path === "") {
    return { kind: "binary" };
  }
  const { path, type, size, children, eden, deleted } = parsed.data;
  if (isEncryptedPath(path)) {
    return { kind: "encrypted" };
  }
  if (deleted) {
    return { kind: "deleted" };
  }
  if (type !== "plain") {
    return { kind: "binary" };
  }
  if (size > MAX_TEXT_LENGTH || children.length > MAX_CHUNKS) {
    return { kind: "large" };
  }
  const wanted = [...new Set(children)].filter((id) => !(id in eden));
  const found =
    wanted.length === 0
      ? []
      : await database.revisions(wanted.map((id) => ({ id })));
  const texts = new Map(
    Object.entries(eden).map(([id, { data }]) => [id, data]),
  );
  for (const document of found) {
    const read = chunk.safeParse(document);
    if (!read.success) {
      continue;
    }
    if (read.data.e_) {
      return { kind: "encrypted" };
    }
    texts.set(read.data._id, read.data.data);
  }
  if (children.some((id) => !texts.has(id))) {
    return { kind: "incomplete" };
  }
  const text = children.map((id) => texts.get(id)).join("");
  return text.length > MAX_TEXT_LENGTH
    ? { kind: "large" }
    : { kind: "text", text };
}
