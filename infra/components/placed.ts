import * as docker from "@pulumi/docker";
import * as pulumi from "@pulumi/pulumi";
import {
  containerArgs,
  type ContainerSpec,
  type UploadedFile,
} from "../container.ts";
import type { Host } from "../hosts.ts";
import { STACK_LABEL, volumeName, type KeptData } from "../names.ts";

/** Puts a container on a host. `name` is the resource's; the container's own stands in the spec. */
export function placeContainer(
  name: string,
  spec: ContainerSpec,
  image: docker.RemoteImage,
  host: Host,
  options: {
    readonly parent: pulumi.Resource;
    readonly dependsOn?: readonly pulumi.Resource[];
    readonly ignoreChanges?: readonly string[];
  },
): docker.Container {
  return new docker.Container(
    name,
    containerArgs(spec, image.imageId, host.engine),
    {
      parent: options.parent,
      // Order without values: an input made from another container's output would replace this one too.
      dependsOn: [...host.networks, ...(options.dependsOn ?? [])],
      hooks: { beforeCreate: [host.beforeCreate] },
      // Envs hold no secret; marked all the same, so that one put there by mistake is not in the state in clear.
      additionalSecretOutputs: ["envs", "uploads"],
      ...(options.ignoreChanges === undefined
        ? {}
        : { ignoreChanges: [...options.ignoreChanges] }),
    },
  );
}

/** An image that the host pulls. `keepLocally`: an `up` never takes away what a roll back needs. */
export function pullImage(
  name: string,
  reference: string,
  host: Host,
  parent: pulumi.Resource,
): docker.RemoteImage {
  return new docker.RemoteImage(
    name,
    { name: reference, keepLocally: true },
    { parent, dependsOn: [...host.networks] },
  );
}

/**
 * A volume that outlives `destroy`. It depends on nothing, which would outlive it too. Its label is set once: a changed one would
 * replace the volume, and its data with it.
 */
export function keepVolume(
  name: string,
  data: KeptData,
  host: Host,
  parent: pulumi.Resource,
): docker.Volume {
  return new docker.Volume(
    name,
    {
      name: volumeName(host.engine, data),
      labels: [{ label: STACK_LABEL, value: host.engine.stack }],
    },
    {
      parent,
      protect: true,
      retainOnDelete: true,
      ignoreChanges: ["labels"],
      hooks: { beforeCreate: [host.beforeVolume] },
    },
  );
}

/** A secret as a file; the name is the variable's that points to it. */
export const SECRET_DIRECTORY = "/run/hearth";

/** Environment and files for secrets: NAME becomes the file and NAME_FILE the variable. */
export function secretFiles(
  secrets: Readonly<Record<string, pulumi.Input<string>>>,
  permissions: "0400" | "0440",
): Pick<ContainerSpec, "environment" | "files"> {
  const names = Object.keys(secrets).toSorted();
  return {
    environment: Object.fromEntries(
      names.map((name) => [`${name}_FILE`, `${SECRET_DIRECTORY}/${name}`]),
    ),
    files: names.map((name) => ({
      path: `${SECRET_DIRECTORY}/${name}`,
      content: secrets[name] ?? "",
      permissions,
    })),
  };
}

/**
 * A file that an operator wrote, in which keys may stand. It comes from this machine's disk and not from the configuration: no
 * other text has to be marked as a secret here.
 */
export function operatorsFile(
  path: string,
  text: pulumi.Input<string>,
): UploadedFile {
  return { path, content: pulumi.secret(text), permissions: "0440" };
}
