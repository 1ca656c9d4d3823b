import type { Home } from "../home/home.ts";
import { readVariable, type Environment } from "../../core/environment.ts";
import { jobsAreOn } from "../jobs/job-switch.ts";
import type { Variables } from "./load.ts";

/** What configuration files may name: the environment, where this supervisor keeps its things, and, where jobs run, their backups. */
export function variablesOf(home: Home, env: Environment): Variables {
  return (name) => {
    switch (name) {
      case "HEARTH_HOME":
        return home.root;
      case "BACKUP_DIRECTORY":
        return jobsAreOn(env) ? home.backups : undefined;
      default:
        return readVariable(name, env);
    }
  };
}
