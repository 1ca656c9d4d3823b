import { problemAt, type Reading } from "../../core/config/reading.ts";
import type { ReadVariable } from "../../core/config/references.ts";
import { numberVariable } from "./numbers.ts";
import type { GeneralSettings } from "./schema.ts";
import { secret } from "./secret.ts";
import { fileOrVariable } from "./sections.ts";
import type { DatabaseConfig } from "./types.ts";

export function readDatabase(
  reading: Reading,
  read: ReadVariable,
  general: Partial<GeneralSettings>,
): DatabaseConfig {
  const url = readDatabaseUrl(reading, read, general);
  const direct = readDirectUrl(reading, read);
  return {
    url: secret(url),
    directUrl: direct === null || direct === url ? null : secret(direct),
    poolSize:
      general.database_connection_pool_limit ??
      numberVariable(reading, read, "DATABASE_POOL_SIZE", {
        min: 1,
        max: 1_000,
      }) ??
      10,
  };
}

/** The address for work that needs a session: the direct one, if there are two. */
export function sessionUrlOf({ url, directUrl }: DatabaseConfig): string {
  return (directUrl ?? url).reveal();
}

function readDirectUrl(reading: Reading, read: ReadVariable): string | null {
  const url = read("DATABASE_DIRECT_URL");
  if (url !== null && !isPostgresUrl(url)) {
    reading.problems.push({
      file: null,
      line: null,
      path: "DATABASE_DIRECT_URL",
      message: DATABASE_URL_FORM,
    });
  }
  return url;
}

function readDatabaseUrl(
  reading: Reading,
  read: ReadVariable,
  general: Partial<GeneralSettings>,
): string {
  const path = ["general_settings", "database_url"];
  const url = fileOrVariable(
    reading,
    path,
    general.database_url,
    read,
    "DATABASE_URL",
  );
  if (url === null) {
    reading.problems.push({
      file: null,
      line: null,
      path: "DATABASE_URL",
      message:
        "is required for keys and spend: set DATABASE_URL (or DATABASE_URL_FILE) to postgresql://user:password@host:5432/database",
    });
  } else if (!isPostgresUrl(url)) {
    reading.problems.push(
      general.database_url === undefined
        ? {
            file: null,
            line: null,
            path: "DATABASE_URL",
            message: DATABASE_URL_FORM,
          }
        : problemAt(reading, path, DATABASE_URL_FORM),
    );
  }
  return url ?? "";
}

function isPostgresUrl(url: string): boolean {
  return /^postgres(ql)?:\/\//.test(url);
}

const DATABASE_URL_FORM =
  "must be an address such as postgresql://user:password@host:5432/database";
