import { configLabel } from "./container.ts";
import { dockerAt, type EngineAddress } from "./engine.ts";

/**
 * Stops and removes a container of this name that an interrupted `up` or a lost state left behind. One that does not carry our
 * label is somebody else's: that is an error, and it is left alone.
 */
export async function removeLeftover(
  engine: EngineAddress,
  name: string,
): Promise<void> {
  const found = await dockerAt(engine, [
    "ps",
    "--all",
    "--no-trunc",
    "--filter",
    `name=^/${name}$`,
    "--format",
    `{{.ID}} {{.Label "${configLabel}"}}`,
  ]);
  const [id, label] = found.trim().split(" ");
  if (id === undefined || id === "") return;
  if (label === undefined || label === "")
    throw new Error(
      `a container named ${name} that Hearth did not make is on ${engine.endpoint}: rename or remove it, then run up again.`,
    );
  await dockerAt(engine, ["stop", "--time", "60", id]);
  await dockerAt(engine, ["rm", "--force", id]);
}
