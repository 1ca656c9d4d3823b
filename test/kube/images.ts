/*
 * Builds the images of the cluster, and prints the path of one archive with all of them, which `cluster.sh load` reads. Run with the
 * engine of `test/infra/machine.sh builder`. An archive of the same source is kept, outside of the clone.
 */
import { createHash } from "node:crypto";
import {
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
} from "node:fs";
import { basename, join } from "node:path";
import { dockerAt } from "../../infra/engine.ts";
import { buildImage } from "../../infra/images/image-build.ts";
import { imageContext } from "../../infra/images/image-context.ts";
import { USER_CACHE } from "../servers/user-cache.ts";

const STAND_INS = ["postgres", "redis", "node", "debian"] as const;
const PROGRAMS = ["gateway", "notes", "supervisor"] as const;
/** What a pod's other containers share their network with. The image of Kubernetes cannot be pulled, and its job is to wait. */
const PAUSE = 'FROM hearth-test/debian\nCMD ["sleep", "infinity"]\n';
/** Archives of this many sources are kept, to go back and forth between branches. */
const KEPT = 3;

const directory = join(USER_CACHE, "kube-images");
const engine = {
  endpoint: process.env["HEARTH_HOST_A"] ?? "",
  sshOpts: [],
};
const docker = (args: readonly string[], input = "") =>
  dockerAt(engine, args, input);

async function build(archive: string): Promise<void> {
  const added = [...PROGRAMS, "pause"].map((name) => `hearth-test/${name}`);
  try {
    await docker(
      ["build", "--quiet", "--tag", "hearth-test/pause", "-"],
      PAUSE,
    );
    for (const context of contexts) {
      await buildImage(
        engine,
        `hearth-test/${context.image}`,
        context.assemble(),
      );
    }
    const saved = ["postgres", "redis"].map((name) => `hearth-test/${name}`);
    await docker(["save", "--output", `${archive}.new`, ...saved, ...added]);
    renameSync(`${archive}.new`, archive);
  } finally {
    await docker(["image", "rm", "--force", ...added]);
  }
}

function pruneBackups(): void {
  const byAge = readdirSync(directory)
    .map((name) => join(directory, name))
    .toSorted((one, other) => statSync(other).mtimeMs - statSync(one).mtimeMs);
  for (const path of byAge.slice(KEPT)) {
    rmSync(path);
  }
}

const contexts = PROGRAMS.map((name) => imageContext(name, "hearth-test/node"));
const bases = await docker([
  "image",
  "inspect",
  "--format",
  "{{.Id}}",
  ...STAND_INS.map((name) => `hearth-test/${name}`),
]);
const hash = createHash("sha256")
  .update(`${bases}${PAUSE}${contexts.map((each) => each.hash).join()}`)
  .digest("hex")
  .slice(0, 16);
mkdirSync(directory, { recursive: true });
const archive = join(directory, `${hash}.tar`);
if (!readdirSync(directory).includes(basename(archive))) {
  await build(archive);
}
utimesSync(archive, new Date(), new Date());
pruneBackups();
process.stdout.write(`${archive}\n`);
