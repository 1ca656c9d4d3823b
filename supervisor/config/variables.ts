import type { Home } from "../home/home.ts";
import { readVariable, type Environment } from "../../core/environment.ts";
import { jobsAreOn } from "../jobs/job-switch.ts";
import type { Variables } from "./load.ts";

/** The variables of configuration files: the environment, the data directory, and the directory for backups where jobs run. */
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
