import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { writeDurably } from "../../core/durable-file.ts";
import { operatorFile, type Home } from "../home/home.ts";
import { changeSecrets } from "../home/secrets.ts";
import type { OffsitePlace } from "./settings.ts";
import { chooseOffsite, readEntries } from "./store.ts";

/**
 * Before the first start of a new machine: restores the keys that stored data is encrypted with, and the operator's configuration,
 * from a backup of Postgres (defaults to the newest). Existing files are kept. Returns what was restored.
 */
export async function takeSettings(
  home: Home,
  place: OffsitePlace,
  name: string | undefined,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const backup = await chooseOffsite(
    place,
    "postgres",
    name,
    Date.now(),
    signal,
  );
  const [entry] = await readEntries(place, [backup], signal);
  const { saltKey, masterKey, files = {} } = entry?.settings ?? {};
  if (saltKey !== undefined && masterKey !== undefined) {
    changeSecrets(home, { saltKey, masterKey });
  }
  const written = Object.entries(files).filter(
    ([file]) => !existsSync(operatorFile(home, file)),
  );
  for (const [file, text] of written) {
    const path = operatorFile(home, file);
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeDurably(path, text);
  }
  return [
    ...(masterKey === undefined ? [] : ["the master key", "the salt key"]),
    ...written.map(([file]) => file),
  ];
}
