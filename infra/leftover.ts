import { configLabel } from "./container.ts";
import { dockerAt, type EngineAddress } from "./engine.ts";
import { askPostgres } from "./postgres-socket.ts";

/**
 * Stops and removes a container of this name that an interrupted `up` or a lost state left behind. One that does not carry our
 * label is somebody else's: that is an error, and it is left alone.
 */
export async function removeLeftover(
  engine: EngineAddress,
  name: string,
): Promise<void> {
  const [found] = await listContainers(engine, `name=^/${name}$`);
  if (found === undefined) return;
  if (!found.ours)
    throw new Error(
      `a container named ${name} that Hearth did not make is on ${engine.endpoint}: rename or remove it, then run up again.`,
    );
  await stopAndRemove(engine, [found.id]);
}

/**
 * Removes a network of this name that the state does not know: with a second network of one name Docker refuses to start any
 * container on it. Our containers on it are unknown to the state too. An interrupted `up` leaves none, as it records networks
 * first: a stack of another state runs, which only `adopt` may take over, and `destroy` remove.
 */
export async function removeLeftoverNetwork(
  engine: EngineAddress,
  name: string,
  { withContainers }: { readonly withContainers: boolean },
): Promise<void> {
  const ids = words(
    await dockerAt(engine, [
      "network",
      "ls",
      "--quiet",
      "--no-trunc",
      "--filter",
      `name=^${name}$`,
    ]),
  );
  for (const id of ids) {
    const attached = await listContainers(engine, `network=${id}`);
    const strange = attached.find(({ ours }) => !ours);
    if (strange !== undefined)
      throw new Error(
        `a network named ${name} that Hearth did not make, or that others use, is on ${engine.endpoint}: take the container ${strange.name} off it, then run up again.`,
      );
    if (attached.length > 0 && !withContainers)
      throw new Error(
        `Hearth runs on ${engine.endpoint} (${namesOf(attached)}), and this state does not know it; nothing was touched: give this command the PULUMI_BACKEND_URL that the \`up\` had; or, if the state is lost, \`npm run deploy -- adopt\`.`,
      );
    await stopAndRemove(
      engine,
      attached.map((container) => container.id),
    );
    await dockerAt(engine, ["network", "rm", id]);
  }
}

/** Drops a login role that the state does not know; it owns nothing, and what it owns all the same goes to the owner's role. */
export async function removeLeftoverRole(
  engine: EngineAddress,
  name: string,
): Promise<void> {
  const role = `"${name.replaceAll('"', '""')}"`;
  const found = await askPostgres(
    engine,
    `SELECT rolname FROM pg_roles WHERE rolname = '${name.replaceAll("'", "''")}';`,
  );
  if (found === "") return;
  await askPostgres(
    engine,
    `REASSIGN OWNED BY ${role} TO hearth_owner; DROP OWNED BY ${role}; DROP ROLE ${role};`,
  );
}

interface Found {
  readonly id: string;
  readonly name: string;
  readonly ours: boolean;
}

async function listContainers(
  engine: EngineAddress,
  filter: string,
): Promise<readonly Found[]> {
  const lines = await dockerAt(engine, [
    "ps",
    "--all",
    "--no-trunc",
    "--filter",
    filter,
    "--format",
    `{{.ID}} {{.Names}} {{.Label "${configLabel}"}}`,
  ]);
  return lines
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [id = "", name = "", label = ""] = line.split(" ");
      return { id, name, ours: label !== "" };
    });
}

/** All at once: docker waits for them side by side. */
async function stopAndRemove(
  engine: EngineAddress,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return;
  await dockerAt(engine, ["stop", "--time", "60", ...ids]);
  await dockerAt(engine, ["rm", "--force", ...ids]);
}

function namesOf(containers: readonly Found[]): string {
  return containers
    .map(({ name }) => name)
    .toSorted()
    .join(", ");
}

function words(text: string): readonly string[] {
  return text.split("\n").filter((each) => each !== "");
}
