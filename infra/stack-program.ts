import { getStack } from "@pulumi/pulumi";
import { withStackFlag } from "../core/stack-flag.ts";
import type { StackOutputs } from "./outputs.ts";
import type { Runtime } from "./config/config-schema.ts";
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
  const outputs = await run(runtime);
  return {
    ...outputs,
    nextCommands: outputs.nextCommands.map((command) =>
      withStackFlag(command, getStack()),
    ),
  };
}

async function run(runtime: Runtime): Promise<StackOutputs> {
  if (runtime === "kubernetes") {
    const { kubernetesProgram } =
      await import("./kubernetes/kubernetes-program.ts");
    return kubernetesProgram();
  }
  const { program } = await import("./index.ts");
  return program();
}
