import * as docker from "@pulumi/docker";
import { ResourceHook, type Resource } from "@pulumi/pulumi";
import type { Host } from "../hosts.ts";
import {
  buildImage,
  hasImage,
  removeOldImages,
} from "../images/image-build.ts";
import type { ImageContext } from "../images/image-context.ts";
import { pullImage } from "./placed.ts";

/** Source of the image of one of Hearth's programs: a registry, by reference, or this repository. */
export type ImageSource = string | ImageContext;

/**
 * An image of Hearth on a host: built there from a context assembled here, or pulled from a registry. Its tag is the content's
 * hash. A hook builds it, not the plugin's own `build`, which detects no changed files, stores the path of this checkout in the
 * state, and requires Docker's containerd image store to be off, which is on by default since Docker 29.
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
    // The hash covers the whole content only if the base, included by name, never changes.
    const { base } = source;
    if (base.includes("@sha256:") && (await hasImage(host.engine, tag))) {
      return;
    }
    await buildImage(host.engine, tag, source.assemble());
    await removeOldImages(host.engine, tag);
  });
  // By then the image exists, and existing images are not pulled.
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
