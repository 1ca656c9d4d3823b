import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { executeSync, IN_TERMINAL } from "../../core/execute.ts";
import { inProject } from "../project-files.ts";
import { imageContext, RCLONE_PACKAGES } from "./image-context.ts";
import { pinnedImages, type BuiltImage } from "./images.ts";

const USAGE = `usage: npm run images -- [gateway] [supervisor] [notes] [--base IMAGE] [--build] [--tag PREFIX] [--rclone]

Assembles the build contexts of our images under .hearth/images/ and prints each one's directory and content hash.
--build builds them with the local docker as PREFIX/<name>:<hash> and PREFIX/<name>:<version> (PREFIX: hearth), to be pushed to
a registry. --rclone adds rclone to the supervisor's image, for off-site backups.

example: npm run images -- gateway --build --tag registry.example.org/hearth
`;
const ALL: readonly BuiltImage[] = ["gateway", "supervisor", "notes"];

function isImage(name: string): name is BuiltImage {
  return ALL.some((each) => each === name);
}

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        base: { type: "string" },
        build: { type: "boolean" },
        tag: { type: "string" },
        rclone: { type: "boolean" },
        help: { type: "boolean", short: "h" },
      },
    });
  } catch (error) {
    process.stderr.write(`hearth: ${(error as Error).message}\n${USAGE}`);
    process.exit(2);
  }
}

/** The reason of a failed build is in Docker's own output. */
function build(tags: readonly string[], directory: string): void {
  const args = ["build", ...tags.flatMap((tag) => ["--tag", tag]), directory];
  const { ok, startError, reason } = executeSync("docker", args, IN_TERMINAL);
  if (ok) {
    return;
  }
  process.stderr.write(
    startError === undefined
      ? `hearth: building ${tags[0]} failed (output above): fix that, then run the same command again.\n`
      : `hearth: ${reason}: install Docker, or copy the contexts printed above to a machine that has it.\n`,
  );
  process.exit(1);
}

const { values, positionals } = readArguments();
const unknown = positionals.filter((name) => !isImage(name));
if (values.help === true || unknown.length > 0) {
  (values.help === true ? process.stdout : process.stderr).write(USAGE);
  process.exit(values.help === true ? 0 : 2);
}
const { version } = JSON.parse(
  readFileSync(inProject("package.json"), "utf8"),
) as { readonly version: string };
for (const image of positionals.length === 0
  ? ALL
  : positionals.filter(isImage)) {
  const { hash, assemble } = imageContext(
    image,
    values.base ?? pinnedImages.nodeBase,
    values.rclone === true && image === "supervisor" ? RCLONE_PACKAGES : [],
  );
  const directory = assemble();
  process.stdout.write(`${image} ${hash} ${directory}\n`);
  if (values.build === true) {
    const tags = [hash, version].map(
      (tag) => `${values.tag ?? "hearth"}/${image}:${tag}`,
    );
    build(tags, directory);
    process.stdout.write(`built ${tags.join(" and ")}\n`);
  }
}
