import { File } from "node:buffer";
import { FormData } from "undici";
import { UploadedFile } from "../calls/uploaded-file.ts";

/** A body as a multipart form: a list repeats its name, an object becomes JSON. Files come last, as some servers require. */
export function formOf(fields: Readonly<Record<string, unknown>>): FormData {
  const form = new FormData();
  const parts = Object.entries(fields).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map(
      (item: unknown) => [name, item] as const,
    ),
  );
  for (const [name, value] of parts) {
    if (!(value instanceof UploadedFile) && value != null) {
      form.append(
        name,
        typeof value === "object" ? JSON.stringify(value) : String(value),
      );
    }
  }
  for (const [name, value] of parts) {
    if (value instanceof UploadedFile) {
      const { bytes, name: fileName, contentType: type } = value;
      form.append(name, new File([bytes], fileName, { type }), fileName);
    }
  }
  return form;
}
