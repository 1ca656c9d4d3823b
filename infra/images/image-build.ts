import { MINUTE_MS } from "../../core/duration.ts";
import { startProcess } from "../../core/execute.ts";
import { textOf } from "../../core/failure.ts";
import {
  dockerAt,
  DockerError,
  outputLines,
  type EngineAddress,
} from "../engine.ts";

/** A slow connection has to transfer the context to the host and the base image from the registry. */
const BUILD_WITHIN_MS = 20 * MINUTE_MS;

/**
 * Builds an image on a host from a local directory, which is passed on standard input: over ssh, the host's own
 * docker builds it. Requires neither buildx nor a registry except the base image's. Throws one sentence with Docker's reason.
 */
export async function buildImage(
  engine: EngineAddress,
  tag: string,
  directory: string,
): Promise<void> {
  // Without a network in between, compression costs more than it saves.
  const options = engine.endpoint.startsWith("ssh://") ? "-czf" : "-cf";
  // Without `-f -`, tar on macOS writes to a tape drive.
  const tar = startProcess("tar", ["-C", directory, options, "-", "."], {
    stdout: "pipe",
    // tar on macOS would add metadata files.
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

/** The one that is being replaced, and one more to roll back to. */
const KEPT_EARLIER_IMAGES = 2;

/**
 * Removes all but the newest earlier images of a program from a host, which `docker system prune` keeps, since they have tags. `built` is
 * the tag of the current one, whose date may be older than theirs.
 */
export async function removeOldImages(
  engine: EngineAddress,
  built: string,
): Promise<void> {
  const [repository = ""] = built.split(":");
  const found = await dockerAt(engine, [
    "image",
    "ls",
    "--format",
    "{{.CreatedAt}} {{.Repository}}:{{.Tag}}",
    repository,
  ]);
  const old = outputLines(found)
    .toSorted()
    .toReversed()
    .map((line) => line.split(" ").at(-1) ?? "")
    .filter((tag) => tag !== built)
    .slice(KEPT_EARLIER_IMAGES);
  if (old.length > 0) {
    // Docker keeps those in use, by another stack too, and fails after it has removed the others.
    await dockerAt(engine, ["image", "rm", ...old]).catch(() => undefined);
  }
}

/** Whether a host has an image with this tag; false also if the host cannot be reached. */
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
