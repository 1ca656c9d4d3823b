import type { Environment } from "../../core/environment.ts";

/** How commands are typed on the machine of this supervisor, to be copied. */
export function hearthCommand(env: Environment): string {
  switch (env["HEARTH_RUNTIME"]) {
    case "docker":
      return "docker exec -it hearth-supervisor hearth";
    case "kubernetes":
      return "kubectl exec -it hearth-supervisor-0 -- hearth";
    default:
      return "npx hearth";
  }
}
