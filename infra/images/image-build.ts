import { startProcess } from "../../core/execute.ts";
import { textOf } from "../../core/failure.ts";
import { dockerAt, DockerError, type EngineAddress } from "../engine.ts";

/** A slow line has to carry the context to the host and the base image into it. */
const BUILD_WITHIN_MS = 20 * 60_000;

/**
 * Builds an image on a host from a directory of this machine, which travels by standard input: over ssh it is the host's own
 * docker that builds. Needs neither buildx nor any registry but the base image's. Throws a sentence with Docker's reason.
 */
export async function buildImage(
  engine: EngineAddress,
  tag: string,
  directory: string,
): Promise<void> {
  // Compressing costs more than it saves where no network is between.
  const options = engine.endpoint.startsWith("ssh://") ? "-czf" : "-cf";
  // Without a file named, macOS' tar writes to a tape drive.
  const tar = startProcess("tar", ["-C", directory, options, "-", "."], {
    stdout: "pipe",
    // macOS' tar would add files of its own.
    env: { ...process.env, COPYFILE_DISABLE: "1" },
  });
  const packed = tar.ended.then(({ ok, reason }) => {
    if (!ok) {
      throw new Error(`tar: ${reason}`);
    }
  });
  const built = dockerAt(
    engine,
    ["build", "--quiet", "--tag", tag, "-"],
    tar.stdout ?? "",
    BUILD_WITHIN_MS,
  );
  try {
    await Promise.all([packed, built]);
  } catch (error) {
    const reason =
      error instanceof DockerError ? error.execution.reason : textOf(error);
    throw new Error(
      `${tag} could not be built on ${engine.endpoint} (${reason}): fix that, then run up again.`,
      { cause: error },
    );
  } finally {
    // Not awaited: the rest of its output is not read, so it does not end.
    void tar.stop();
  }
}

/** Whether a host has an image of this tag; false too when it cannot be asked. */
export async function hasImage(
  engine: EngineAddress,
  tag: string,
): Promise<boolean> {
  return dockerAt(engine, [
    "image",
    "inspect",
    "--format",
    "{{.Id}}",
    tag,
  ]).then(
    () => true,
    () => false,
  );
}
