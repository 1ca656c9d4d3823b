// A supervisor to be killed: starts the test programs named in its second argument (JSON) on the home of its first.
import { dirname } from "node:path";
import { locateHome } from "../../supervisor/home/home.ts";
import { openHistory } from "../../supervisor/history/history.ts";
import { programSpec, testRuntime, type ProgramChoice } from "./specs.ts";

const [root = "", choices = "[]"] = process.argv.slice(2);
const home = locateHome({ HEARTH_HOME: root });
const programs = JSON.parse(choices) as readonly ProgramChoice[];
const runtime = testRuntime(
  home,
  openHistory(home.history),
  programs.map((choice) => programSpec(dirname(home.root), choice)),
);
await runtime.start();
process.stdout.write("up\n");
setInterval(() => {}, 1_000_000);
