import { open, seal, sealingKeys, type SealingKeys } from "../config/sealed.ts";
import { parseRecord, type JsonRecord } from "../../core/json.ts";

/** JSON encrypted for one row. */
interface SealedJson {
  readonly sealed: string;
  /** Of the JSON. */
  readonly bytes: number;
}

/** Encrypts for the row of an id. */
export function sealJson(
  value: unknown,
  id: string,
  keys: SealingKeys,
): SealedJson {
  const json = JSON.stringify(value);
  return {
    sealed: seal(json, sealingKeys(keys)[0], id),
    bytes: Buffer.byteLength(json),
  };
}

/** null: it was encrypted with a key that is no longer known. */
export function openJson(
  sealed: string,
  id: string,
  keys: SealingKeys,
): JsonRecord | null {
  const opened = open(sealed, sealingKeys(keys), id);
  return opened === null ? null : parseRecord(opened.text.reveal());
}
