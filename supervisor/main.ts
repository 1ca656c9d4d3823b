// Where installed units and releases start the supervisor: the path stays.
import { runSupervisor } from "../embedded/program.ts";

void runSupervisor();
