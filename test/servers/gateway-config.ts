import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig, type LoadResult } from "../../gateway/config/load.ts";

/** The variables without which no configuration is valid. */
export const REQUIRED_VARIABLES = {
  PROXY_MASTER_KEY: "sk-0123456789abcdefghij",
  DATABASE_URL: "postgresql://hearth:pw@127.0.0.1:5432/hearth",
  HEARTH_JOURNAL_DIR: "/var/lib/hearth/journal",
};

/** Loads a gateway's configuration from the text of its file and its variables, in addition to the required ones. */
export function loadText(
  text: string,
  env: Readonly<Record<string, string>> = {},
): LoadResult {
  const projectRoot = mkdtempSync(join(tmpdir(), "hearth-test-config-"));
  try {
    const file = join(projectRoot, "gateway.yaml");
    writeFileSync(file, text);
    return loadConfig({
      file,
      env: { ...REQUIRED_VARIABLES, ...env },
      projectRoot,
    });
  } finally {
    rmSync(projectRoot, { recursive: true, force: true });
  }
}
