import { getStack, RunError } from "@pulumi/pulumi";
import { readRawConfig, runtimeOf } from "./config/program-config.ts";
import type { StackOutputs } from "./outputs.ts";

/**
 * The program of the stack's runtime: two hosts, or a cluster. Each is loaded only where it runs. Throws ConfigRejected with every
 * mistake before anything is registered. A plain `pulumi` command cannot complete a rotation: `isPlain` rejects it.
 */
export async function stackProgram(isPlain = false): Promise<StackOutputs> {
  const { values } = readRawConfig();
  const runtime = runtimeOf(values);
  if (isPlain && values["rotation"] !== undefined) {
    throw new RunError(
      `a rotation is unfinished; nothing was changed: \`npm run deploy -- up --stack ${getStack()}\` names the command that completes it.`,
    );
  }
  if (runtime === "kubernetes") {
    const { kubernetesProgram } =
      await import("./kubernetes/kubernetes-program.ts");
    return kubernetesProgram();
  }
  const { program } = await import("./index.ts");
  return program();
}
