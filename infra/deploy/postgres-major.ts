import {
  imageReferenceOf,
  postgresMajorOf,
  type HostName,
} from "../config/config.ts";
import { dockerAt, type StackEngine } from "../engine.ts";
import { containerName, volumeName } from "../names.ts";
import { ANSWERS_WITHIN_MS, lookAt, type HostView } from "./host-view.ts";
import { readSettings, type Session } from "./session.ts";

/** Where every image has the volume; the data of each major version is in a directory of that name below. */
export const DATA_ROOT = "/var/lib/postgresql";
/** An image that is not on the host yet is pulled. */
export const PULLED_WITHIN_MS = 600_000;

/**
 * Throws one sentence when Postgres's image has another major version than the data: each version has a directory of its own in
 * the volume, so the new server would begin with an empty database. `without` is the host that is left out.
 */
export async function needSameMajor(
  session: Session,
  without: HostName | undefined,
): Promise<void> {
  const { hosts, engines } = session;
  // Mistakes in the configuration are the program's to tell.
  if (hosts === null || hosts.placement.postgres === without) {
    return;
  }
  const engine = engines[hosts.placement.postgres];
  const view = await lookAt(engine);
  if (view === null || !view.volumes.includes(volumeName(engine, "postgres"))) {
    return;
  }
  const image = imageReferenceOf(await readSettings(session), "postgres");
  const wanted = postgresMajorOf(image);
  // An image of the operator's own, whose name does not say.
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

/** Of the server that runs: one name, or none where it does not say. */
export async function runningMajor(
  engine: StackEngine,
): Promise<readonly string[]> {
  const said = await dockerAt(
    engine,
    ["exec", containerName(engine, "postgres"), "postgres", "--version"],
    "",
    ANSWERS_WITHIN_MS,
  );
  return [...said.matchAll(/\(PostgreSQL\) (\d+)/g)].map(
    ([, major = ""]) => major,
  );
}

/** Those whose data is in the volume. */
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
