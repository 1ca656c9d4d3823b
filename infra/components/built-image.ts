import * as docker from "@pulumi/docker";
import type { Resource } from "@pulumi/pulumi";
import { imageReferenceOf, type HearthConfig } from "../config.ts";
import type { Host } from "../hosts.ts";
import { assembleImage, type ImageContext } from "../image-context.ts";
import { pullImage } from "./placed.ts";

/**
 * An image of ours on a host: built there from a context assembled here, or taken from a registry when the operator names one.
 * Changed files alone are no difference to the provider, so their hash is tag and trigger.
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
  const { directory, hash } = contextOf(image, config);
  return new docker.RemoteImage(
    name,
    {
      name: `hearth/${image}:${hash}`,
      build: { context: directory, dockerfile: "Dockerfile" },
      triggers: { content: hash },
      keepLocally: true,
    },
    { parent, provider: host.provider },
  );
}

/** Assembled once in a run of the program, for both hosts. */
const contexts = new WeakMap<HearthConfig, Map<string, ImageContext>>();

function contextOf(
  image: "gateway" | "supervisor",
  config: HearthConfig,
): ImageContext {
  const known = contexts.get(config) ?? new Map<string, ImageContext>();
  contexts.set(config, known);
  const context =
    known.get(image) ??
    assembleImage(image, imageReferenceOf(config, "nodeBase"));
  known.set(image, context);
  return context;
}
