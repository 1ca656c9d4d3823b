import { randomUUID } from "node:crypto";
import fs from "node:fs/promises";
import path from "node:path";
import { writeDurably } from "../../core/durable-file.ts";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The id of the instance whose journal is in `directory`, created at the first call. The caller holds the journal's lock. */
export async function instanceOf(directory: string): Promise<string> {
  const file = path.join(directory, "instance");
  const known = await readIfThere(file);
  if (known !== null) {
    if (UUID.test(known)) {
      return known;
    }
    throw new Error(
      `${file} is not a valid instance id: restore the file, or delete it to create a new one.`,
    );
  }
  const instance = randomUUID();
  writeDurably(file, `${instance}\n`);
  return instance;
}

async function readIfThere(file: string): Promise<string | null> {
  try {
    return (await fs.readFile(file, "utf8")).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") {
      return null;
    }
    throw error;
  }
}
