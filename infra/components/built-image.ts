import * as docker from "@pulumi/docker";
import type { Resource } from "@pulumi/pulumi";
import { imageReferenceOf, type HearthConfig } from "../config.ts";
import type { Host } from "../hosts.ts";
import { assembleImage } from "../image-context.ts";
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
  const { directory, hash } = assembleImage(
    image,
    imageReferenceOf(config, "nodeBase"),
  );
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
