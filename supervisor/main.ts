// Installed units and releases start the supervisor by this path.
import { runSupervisor } from "../embedded/program.ts";

void runSupervisor();
