import { join } from "node:path";
import { execute } from "../../core/execute.ts";
import { runScript } from "../infra/two-engines.ts";
import { TOOLCHAIN } from "./helm.ts";

/** The control plane's address, at which pods reach programs of the machine. */
export const CONTROL_PLANE = "10.79.0.1";

/** The directory of the machine's cluster. */
export function machine(): string {
  const directory = process.env["HEARTH_TEST_HOSTS"];
  if (directory === undefined) {
    throw new Error(
      "the scenarios run on their own machine: npm run test:kube",
    );
  }
  return directory;
}

/** What clients of the cluster find in their environment. */
export function clusterEnv(): Readonly<Record<string, string>> {
  return {
    KUBECONFIG: join(machine(), "kubeconfig"),
    KUBECACHEDIR: join(machine(), "kubectl"),
    HELM_CACHE_HOME: join(machine(), "helm"),
    // `npm run deploy` asks kubectl.
    PATH: `${process.env["PATH"] ?? ""}:${TOOLCHAIN}`,
  };
}

/** Runs kubectl; returns its output. Throws what it wrote to stderr if it fails, or warns about PodSecurity. */
export async function kubectl(
  args: readonly string[],
  input?: string,
): Promise<string> {
  const { ok, stdout, stderr } = await execute(
    join(TOOLCHAIN, "kubectl"),
    args,
    input === undefined ? {} : { input },
  );
  if (!ok || stderr.includes("would violate PodSecurity")) {
    throw new Error(`kubectl ${args.join(" ")}: ${stderr}`);
  }
  return stdout;
}

/** Reads objects with `kubectl get`. */
export async function get<T>(...args: readonly string[]): Promise<T> {
  return JSON.parse(await kubectl(["get", ...args, "--output=json"])) as T;
}

/** Creates or changes objects. */
export async function apply(...objects: readonly object[]): Promise<void> {
  await kubectl(
    ["apply", "--server-side", "--filename=-"],
    JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }),
  );
}

/** Creates a namespace that accepts only pods that meet PodSecurity `restricted`; templates of others cause warnings. */
export async function createNamespace(name: string): Promise<void> {
  const label = (mode: string) => `pod-security.kubernetes.io/${mode}`;
  await apply({
    apiVersion: "v1",
    kind: "Namespace",
    metadata: {
      name,
      labels: {
        [label("enforce")]: "restricted",
        [label("warn")]: "restricted",
      },
    },
  });
}

/** Simulates a power failure of a node, or its end. */
export async function power(verb: "off" | "on", node: 1 | 2): Promise<void> {
  await runScript("test/kube/cluster.sh", verb, String(node));
}
