import { z } from "zod";
import { UploadedFile } from "../../calls/uploaded-file.ts";
import { METADATA_FIELDS } from "../../calls/metadata.ts";

/** Fields of multipart forms: all of them are texts or files. */

const isFile = (value: unknown) =>
  value instanceof UploadedFile && value.bytes.length > 0;

export const file = z
  .custom<UploadedFile>(isFile, {
    error: "must be a file that is not empty, in multipart/form-data",
  })
  .meta({ type: "string", format: "binary" });

export const files = z
  .custom<UploadedFile | readonly UploadedFile[]>(
    (value) => [value].flat().every(isFile),
    { error: "must be files that are not empty, in multipart/form-data" },
  )
  .meta({ type: "string", format: "binary" });

export const text = z.string();

/** `true` or `false` as text. */
export const flag = z
  .string()
  .regex(/^(true|false)$/i, { error: "must be true or false" })
  .transform((value) => value.toLowerCase() === "true");

/** A whole number from 1, as text. */
export function count(most: number) {
  return z
    .string()
    .refine((value) => /^[1-9]\d{0,5}$/.test(value) && Number(value) <= most, {
      error: `must be a whole number from 1 to ${most}`,
    });
}

/** Fields of every form. */
export const COMMON_FIELDS = { model: text, ...METADATA_FIELDS };
