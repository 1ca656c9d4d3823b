import { imageReferenceOf, postgresMajorOf } from "../config/config.ts";
import type { HostName } from "../config/config-schema.ts";
import { dockerAt, type StackEngine } from "../engine.ts";
import { containerName, volumeName } from "../names.ts";
import { ANSWERS_WITHIN_MS, probeHost, type HostView } from "./host-view.ts";
import { readSettings, type Session } from "./session.ts";

/** Path of the volume in every image; the data of each major version is in a subdirectory of that name. */
export const DATA_ROOT = "/var/lib/postgresql";
/** Includes the time to pull the image. */
export const PULLED_WITHIN_MS = 600_000;

/**
 * Throws one sentence if Postgres's image has another major version than the data: each version has its own directory in
 * the volume, so the new server would start with an empty database. `without` is the excluded host.
 */
export async function requireSameMajor(
  session: Session,
  without: HostName | undefined,
): Promise<void> {
  const { hosts, engines } = session;
  // Configuration mistakes are reported by the program.
  if (hosts === null || hosts.placement.postgres === without) {
    return;
  }
  const engine = engines[hosts.placement.postgres];
  const view = await probeHost(engine);
  if (view === null || !view.volumes.includes(volumeName(engine, "postgres"))) {
    return;
  }
  const image = imageReferenceOf(await readSettings(session), "postgres");
  const wanted = postgresMajorOf(image);
  // An image of the operator's own, whose name does not contain the version.
  if (wanted === undefined) {
    return;
  }
  const found = postgresRuns(engine, view)
    ? await runningMajor(engine)
    : await majorsOf(engine, image);
  if (found.length === 0 || found.includes(wanted)) {
    return;
  }
  throw new Error(
    `the image ${image.split("@")[0]} has Postgres ${wanted}, but the data is from Postgres ${found.join(" and ")}, so the database would be empty; nothing was changed: \`npm run deploy -- upgrade postgres\` copies the data and brings the stack up; or check out the version of Hearth that has Postgres ${found.join(" or ")}.`,
  );
}

export function postgresRuns(
  engine: StackEngine,
  { containers }: HostView,
): boolean {
  const postgres = containerName(engine, "postgres");
  return containers.some(
    ({ name, status }) => name === postgres && status.startsWith("Up"),
  );
}

/** Major version of the running server: one, or none if unknown. */
export async function runningMajor(
  engine: StackEngine,
): Promise<readonly string[]> {
  const output = await dockerAt(
    engine,
    ["exec", containerName(engine, "postgres"), "postgres", "--version"],
    "",
    ANSWERS_WITHIN_MS,
  );
  return [...output.matchAll(/\(PostgreSQL\) (\d+)/g)].map(
    ([, major = ""]) => major,
  );
}

/** Major versions with data in the volume. */
export async function majorsOf(
  engine: StackEngine,
  image: string,
): Promise<readonly string[]> {
  const listed = await dockerAt(
    engine,
    [
      "run",
      "--rm",
      "--network",
      "none",
      "--entrypoint",
      "ls",

      "--volume",
      `${volumeName(engine, "postgres")}:/data:ro`,
      image,
      "/data",
    ],
    "",
    PULLED_WITHIN_MS,
  );
  return listed.split("\n").filter((name) => /^\d+$/.test(name));
}
