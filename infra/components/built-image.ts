import * as docker from "@pulumi/docker";
import { ResourceHook, type Resource } from "@pulumi/pulumi";
import { imageReferenceOf, type HearthConfig } from "../config.ts";
import type { Host } from "../hosts.ts";
import { buildImage, hasImage } from "../image-build.ts";
import { assembleImage, type ImageContext } from "../image-context.ts";
import { pullImage } from "./placed.ts";

/**
 * An image of ours on a host: built there from a context assembled here, or taken from a registry when the operator names one.
 * Its tag is the content's hash. A hook builds it, not the plugin's own `build`: that one notices no changed file, keeps the
 * path of this checkout in the state, and wants Docker's containerd image store switched off, which a new Docker 29 has on.
 */
export function builtImage(
  name: string,
  image: "gateway" | "supervisor",
  config: HearthConfig,
  host: Host,
  parent: Resource,
): docker.RemoteImage {
  const taken = config.images[image];
  if (taken !== undefined) return pullImage(name, taken, host, parent);
  const base = imageReferenceOf(config, "nodeBase");
  const { directory, hash } = contextOf(image, config, base);
  const tag = `hearth/${image}:${hash}`;
  const build = new ResourceHook(`build-${name}`, async () => {
    // The hash is of the whole content only where the base, which is in it by its name, is one image for ever.
    if (base.includes("@sha256:") && (await hasImage(host.engine, tag))) return;
    await buildImage(host.engine, tag, directory);
  });
  // By then the image is there, and what is there is not pulled.
  return new docker.RemoteImage(
    name,
    { name: tag, keepLocally: true },
    {
      parent,
      provider: host.provider,
      dependsOn: [...host.networks],
      hooks: { beforeCreate: [build] },
    },
  );
}

/** Assembled once in a run of the program, for both hosts. */
const contexts = new WeakMap<HearthConfig, Map<string, ImageContext>>();

function contextOf(
  image: "gateway" | "supervisor",
  config: HearthConfig,
  base: string,
): ImageContext {
  const known = contexts.get(config) ?? new Map<string, ImageContext>();
  contexts.set(config, known);
  const context =
    known.get(image) ??
    assembleImage(image, base, image === "supervisor" ? toolsFor(config) : []);
  known.set(image, context);
  return context;
}

/** Debian's packages that the supervisor runs. */
function toolsFor({ offsiteTarget }: HearthConfig): readonly string[] {
  return offsiteTarget === undefined ? [] : ["ca-certificates", "rclone"];
}
