import { readRawConfig, runtimeOf } from "./config/program-config.ts";
import type { StackOutputs } from "./outputs.ts";

/**
 * The program of the stack's runtime: two hosts, or a cluster. Each is loaded only where it runs. Throws ConfigRejected with every
 * mistake before anything is registered. A plain `pulumi` command cannot complete a rotation of two hosts: `isPlain` rejects it.
 */
export async function stackProgram(isPlain = false): Promise<StackOutputs> {
  if (runtimeOf(readRawConfig().values) === "kubernetes") {
    const { grownProgram } = await import("./grown/grown-program.ts");
    return grownProgram();
  }
  const twoHosts = await import("./index.ts");
  return isPlain ? twoHosts.programOutsideRotations() : twoHosts.program();
}
