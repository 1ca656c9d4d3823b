// Where installed releases start the CLI, and a supervisor in the foreground switches to another release: the path stays.
import { runCommandLine } from "../../cli/main.ts";

await runCommandLine();
