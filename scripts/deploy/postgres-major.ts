import { imageReferenceOf, type HostName } from "../../infra/config.ts";
import { dockerAt, type EngineAddress } from "../../infra/engine.ts";
import { answersWithinMs, lookAt, type HostView } from "./host-view.ts";
import { readSettings, type Session } from "./session.ts";

const container = "hearth-postgres";
const volume = "hearth-postgres";
/** An image that is not on the host yet is pulled. */
const pulledWithinMs = 600_000;

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
  if (hosts === null || hosts.placement.postgres === without) return;
  const engine = engines[hosts.placement.postgres];
  const view = await lookAt(engine);
  if (view === null || !view.volumes.includes(volume)) return;
  const image = imageReferenceOf(await readSettings(session), "postgres");
  const wanted = /postgres:(\d+)/.exec(image)?.[1];
  // An image of the operator's own, whose name does not say.
  if (wanted === undefined) return;
  const found = await majorsOf(engine, view, image);
  if (found.length === 0 || found.includes(wanted)) return;
  throw new Error(
    `the image ${image.split("@")[0]} has Postgres ${wanted}, and the data is of Postgres ${found.join(" and ")}: with it the database would be empty, so nothing was changed. Copy the data first (docs/deploy.md, "Another major version of Postgres"), or check out the version of Hearth that has Postgres ${found.join(" or ")}.`,
  );
}

/** That of the running server; else those of the volume. */
async function majorsOf(
  engine: EngineAddress,
  { containers }: HostView,
  image: string,
): Promise<readonly string[]> {
  const running = containers.some(
    ({ name, status }) => name === container && status.startsWith("Up"),
  );
  if (running) {
    const said = await dockerAt(
      engine,
      ["exec", container, "postgres", "--version"],
      "",
      answersWithinMs,
    );
    return [...said.matchAll(/\(PostgreSQL\) (\d+)/g)].map(
      ([, major = ""]) => major,
    );
  }
  const listed = await dockerAt(
    engine,
    [
      ...["run", "--rm", "--network", "none", "--entrypoint", "ls"],
      ...["--volume", `${volume}:/data:ro`, image, "/data"],
    ],
    "",
    pulledWithinMs,
  );
  return listed.split("\n").filter((name) => /^\d+$/.test(name));
}
