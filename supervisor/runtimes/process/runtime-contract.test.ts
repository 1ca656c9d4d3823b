import { mkdirSync } from "node:fs";
import { openHistory } from "../../history/history.ts";
import { testRuntimeContract } from "../../../test/supervisor/runtime-contract.ts";
import { programSpec, testRuntime } from "../../../test/supervisor/specs.ts";
import { temporaryHome } from "../../../test/supervisor/temporary-home.ts";
import { freePort } from "../../../test/servers/ports.ts";

testRuntimeContract("processes", async () => {
  const place = temporaryHome();
  mkdirSync(place.home.logs, { recursive: true });
  const history = openHistory(place.home.history);
  const specs = await Promise.all(
    ["one", "two"].map(async (name) =>
      programSpec(place.directory, { name, port: await freePort() }),
    ),
  );
  const runtime = testRuntime(place.home, history, specs);
  await runtime.start();
  return {
    runtime,
    one: "one",
    two: "two",
    crash: async (name) => {
      process.kill(runtime.inspect(name)?.pid ?? 0, "SIGKILL");
    },
    close: async () => {
      runtime.halt();
      await runtime.stop("test ended");
      history.close();
      place.remove();
    },
  };
});
