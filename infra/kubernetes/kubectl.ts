import { homedir } from "node:os";
import { execute, type Execution } from "../../core/execute.ts";
import type { KubernetesConfig } from "./kubernetes-schema.ts";

type Cluster = KubernetesConfig["cluster"];

/** A kubectl command that failed. */
export class KubectlError extends Error {
  readonly execution: Execution;

  constructor(execution: Execution) {
    super(`kubectl: ${execution.reason}.`);
    this.name = "KubectlError";
    this.execution = execution;
  }
}

/**
 * Runs one kubectl command in the stack's namespace and returns its standard output. Secrets belong in `input`: arguments are visible
 * to every user of the machine. Throws a KubectlError, also after `withinMs`.
 */
export async function kubectlAt(
  { context, kubeconfig, namespace }: Cluster,
  args: readonly string[],
  input: string,
  withinMs: number,
): Promise<string> {
  const execution = await execute(
    "kubectl",
    [
      ...(kubeconfig === undefined ? [] : ["--kubeconfig", inHome(kubeconfig)]),
      "--context",
      context,
      "--namespace",
      namespace,
      ...args,
    ],
    { input, timeoutMs: withinMs },
  );
  if (!execution.ok) {
    throw new KubectlError(execution);
  }
  return execution.stdout;
}

/** A kubectl command for the operator to type. */
export function typedKubectl(
  { context, kubeconfig, namespace }: Cluster,
  command: string,
): string {
  return `kubectl ${kubeconfigFlag(kubeconfig)}--context ${context} --namespace ${namespace} ${command}`;
}

/** A helm command for the operator to type. */
export function typedHelm(
  { context, kubeconfig, namespace }: Cluster,
  command: string,
): string {
  return `helm ${kubeconfigFlag(kubeconfig)}--kube-context ${context} --namespace ${namespace} ${command}`;
}

function kubeconfigFlag(kubeconfig: string | undefined): string {
  return kubeconfig === undefined ? "" : `--kubeconfig ${kubeconfig} `;
}

/** A shell expands ~, but not in a setting. */
export function inHome(path: string): string {
  return path.replace(/^~(?=\/)/, homedir());
}
