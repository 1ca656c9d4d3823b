import type { TestProject } from "vitest/node";
import { prepareTemplate } from "./database.ts";
import { startPostgres } from "./postgres.ts";

/** One real Postgres for the whole run; each test creates a database in it. */
export async function setup(
  project: TestProject,
): Promise<() => Promise<void>> {
  const postgres = await startPostgres();
  try {
    await prepareTemplate(postgres);
  } catch (error) {
    await postgres.remove();
    throw error;
  }
  project.provide("postgresUrl", postgres.url("postgres"));
  return () => postgres.remove();
}
