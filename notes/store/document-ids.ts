import { randomBytes, randomInt } from "node:crypto";
import { Refusal } from "../refusal.ts";

/** Throws for invalid document ids. */
export function checkId(id: string): void {
  if (id === "") {
    throw new Refusal("illegal_docid", "Document id must not be empty");
  }
  if (id.startsWith("_") && !/^_(?:local|design)\/./s.test(id)) {
    throw new Refusal(
      "illegal_docid",
      "Only reserved document ids may start with underscore.",
    );
  }
}

/** Throws for design documents: members may not write them, and views are not supported. */
export function refuseDesign(id: string, admin: boolean): void {
  if (!id.startsWith("_design/")) {
    return;
  }
  if (!admin) {
    throw new Refusal("forbidden", "You are not a db or server admin.");
  }
  throw new Refusal(
    "not_implemented",
    "Design documents are not supported: there are no views, indexes or validation functions.",
  );
}

let idPrefix = "";
let idSuffix = Infinity;

/** Creates an id. Ids sort in the order of their creation, which keeps their rows together. */
export function newId(): string {
  const MAX_SUFFIX = 0xffffff;
  const MAX_STEP = 0xffd;
  idSuffix += randomInt(1, MAX_STEP);
  if (idSuffix > MAX_SUFFIX) {
    idPrefix = randomBytes(13).toString("hex");
    idSuffix = randomInt(1, MAX_STEP);
  }
  return idPrefix + idSuffix.toString(16).padStart(6, "0");
}

/** An id within a URL path, as CouchDB writes it in Location headers. */
export function idInUrl(id: string): string {
  return encodeURIComponent(id)
    .replace(
      /[!'()*]/g,
      (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
    )
    .replaceAll("%3A", ":");
}
