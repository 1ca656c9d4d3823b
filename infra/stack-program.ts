import type { StackOutputs } from "./outputs.ts";
import { readRawConfig, runtimeOf } from "./config/program-config.ts";

/**
 * The program of the stack's runtime: two hosts, or a cluster. Each is loaded only where it runs. Throws ConfigRejected with every
 * mistake before anything is registered. `isPlain`: run by a plain `pulumi` command instead of `npm run deploy`.
 */
export async function stackProgram(isPlain = false): Promise<StackOutputs> {
  const raw = readRawConfig();
  const runtime = runtimeOf(raw.values);
  if (isPlain) {
    const { checkPlainRun } = await import("./plain-run.ts");
    await checkPlainRun(raw, runtime);
  }
  if (runtime === "kubernetes") {
    const { kubernetesProgram } =
      await import("./kubernetes/kubernetes-program.ts");
    return kubernetesProgram();
  }
  const { program } = await import("./index.ts");
  return program();
}
