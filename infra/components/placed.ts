import * as docker from "@pulumi/docker";
import * as pulumi from "@pulumi/pulumi";
import {
  containerArgs,
  type ContainerSpec,
  type UploadedFile,
} from "../container.ts";
import type { Host } from "../hosts.ts";
import { STACK_LABEL, volumeName, type KeptData } from "../names.ts";

/** Creates a container on a host. `name` is the resource's name; the container's own is in the spec. */
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
      // Order without values: an input derived from another container's output would replace this one too.
      dependsOn: [...host.networks, ...(options.dependsOn ?? [])],
      hooks: { beforeCreate: [host.beforeCreate] },
      // `envs` contains no secrets; marked anyway, so that a secret added by mistake is encrypted in the state.
      additionalSecretOutputs: ["envs", "uploads"],
      ...(options.ignoreChanges === undefined
        ? {}
        : { ignoreChanges: [...options.ignoreChanges] }),
    },
  );
}

/** An image pulled by the host. `keepLocally`: an `up` never removes an image that a rollback needs. */
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
 * A volume that `destroy` keeps. It depends on nothing, since dependencies would be kept too. Its label is set once: a change
 * would replace the volume, and its data with it.
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

/** Directory of secret files, each named after its variable. */
const SECRET_DIRECTORY = "/run/hearth";

/** Environment and files for secrets: file NAME and variable NAME_FILE. */
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
 * A file written by the operator, which may contain keys. It comes from this machine's disk, not from the configuration: no
 * other text needs to be marked as secret here.
 */
export function operatorsFile(
  path: string,
  text: pulumi.Input<string>,
): UploadedFile {
  return { path, content: pulumi.secret(text), permissions: "0440" };
}
