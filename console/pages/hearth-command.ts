import { installationOfSupervisor } from "../../core/installation.ts";
import { readVariable, type Environment } from "../../core/environment.ts";
import { containerName } from "../../supervisor/runtimes/docker/container-view.ts";

/** How commands are typed on the machine of this supervisor, to be copied. */
export function hearthCommand(env: Environment): string {
  switch (installationOfSupervisor(env)) {
    case "two-hosts":
      return `docker exec -it ${supervisorContainer(env)} hearth`;
    case "stack-on-kubernetes":
    case "kubernetes":
      return `kubectl exec -it ${supervisorPod(env)} -- hearth`;
    case "embedded":
      return "npx hearth";
  }
}

/** A host may have a second stack, whose containers have another prefix. */
export function supervisorContainer(env: Environment): string {
  return containerName(
    "supervisor",
    readVariable("HEARTH_CONTAINER_PREFIX", env) ?? "hearth",
  );
}

/** Kubernetes sets the variable to the name of the pod. */
export function supervisorPod(env: Environment): string {
  return env["HOSTNAME"] ?? "hearth-supervisor-0";
}
