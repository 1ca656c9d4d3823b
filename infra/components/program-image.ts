import * as docker from "@pulumi/docker";
import { ResourceHook, type Resource } from "@pulumi/pulumi";
import type { Host } from "../hosts.ts";
import { buildImage, hasImage } from "../images/image-build.ts";
import type { ImageContext } from "../images/image-context.ts";
import { pullImage } from "./placed.ts";

/** Where the image of one of our programs comes from: a registry, by reference, or this repository. */
export type ImageSource = string | ImageContext;

/**
 * An image of ours on a host: built there from a context assembled here, or taken from a registry. Its tag is the content's hash.
 * A hook builds it, not the plugin's own `build`: that one notices no changed file, keeps the path of this checkout in the state,
 * and wants Docker's containerd image store switched off, which a new Docker 29 has on.
 */
export function programImage(
  name: string,
  source: ImageSource,
  host: Host,
  parent: Resource,
): docker.RemoteImage {
  if (typeof source === "string") {
    return pullImage(name, source, host, parent);
  }
  const tag = `hearth/${source.image}:${source.hash}`;
  const build = new ResourceHook(`build-${name}`, async () => {
    // The hash is of the whole content only where the base, which is in it by its name, is one image for ever.
    const { base } = source;
    if (base.includes("@sha256:") && (await hasImage(host.engine, tag))) {
      return;
    }
    await buildImage(host.engine, tag, source.assemble());
  });
  // By then the image is there, and what is there is not pulled.
  return new docker.RemoteImage(
    name,
    { name: tag, keepLocally: true },
    {
      parent,
      dependsOn: [...host.networks],
      hooks: { beforeCreate: [build] },
    },
  );
}
