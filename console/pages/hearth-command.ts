import { installationOfSupervisor } from "../../core/installation.ts";
import type { Environment } from "../../core/environment.ts";

/** How commands are typed on the machine of this supervisor, to be copied. */
export function hearthCommand(env: Environment): string {
  switch (installationOfSupervisor(env)) {
    case "two-hosts":
      return "docker exec -it hearth-supervisor hearth";
    case "stack-on-kubernetes":
    case "kubernetes":
      return "kubectl exec -it hearth-supervisor-0 -- hearth";
    case "embedded":
      return "npx hearth";
  }
}
