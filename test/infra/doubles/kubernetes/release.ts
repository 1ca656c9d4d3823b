import type { Execution } from "../../../../core/execute.ts";
import { helm } from "../../../kube/helm.ts";
import {
  CreatedUnhealthy,
  type ResourceDouble,
  type Values,
} from "../protocol.ts";
import { recordedDiff } from "../recorded.ts";

/**
 * kubernetes.helm.v3.Release by the command `helm`, of which the plugin contains the library. Rules are from its source
 * (pulumi-kubernetes, provider/pkg/provider/helm_release.go).
 */
export function releaseDouble(cluster: Values): ResourceDouble {
  const flags = [
    ...(cluster.kubeconfig === undefined
      ? []
      : [`--kubeconfig=${String(cluster.kubeconfig)}`]),
    `--kube-context=${String(cluster.context)}`,
  ];
  const run = (
    [verb, ...rest]: readonly string[],
    inputs: Values,
    input?: string,
  ) =>
    helm(
      [
        String(verb),
        String(inputs.name),
        ...rest,
        `--namespace=${String(inputs.namespace)}`,
        ...flags,
      ],
      input,
    );
  const exists = async (inputs: Values): Promise<boolean> => {
    const status = await run(["status"], inputs);
    if (!status.ok && !status.stderr.includes("release: not found")) {
      throw new Error(reasonOf(status));
    }
    return status.ok;
  };
  const apply = (verb: "install" | "upgrade", inputs: Values) =>
    run(
      [verb, String(inputs.chart), ...optionsOf(inputs)],
      inputs,
      JSON.stringify(inputs.values ?? {}),
    );
  return {
    // "forceNewFields" and "DeleteBeforeReplace: false".
    deleteBeforeReplace: false,
    diff: recordedDiff("Release", {
      name: "replace",
      namespace: "replace",
      chart: "update",
      description: "update",
      timeout: "update",
      values: "update",
    }),
    async create(inputs) {
      const id = `${String(inputs.namespace)}/${String(inputs.name)}`;
      // Not with --install: an existing release is an error.
      const created = await apply("install", inputs);
      if (created.ok) {
        return { id, state: inputs };
      }
      if (await exists(inputs)) {
        throw new CreatedUnhealthy(id, inputs, reasonOf(created), "update");
      }
      throw new Error(reasonOf(created));
    },
    read: async (_id, state) => ((await exists(state)) ? state : null),
    async update(_id, _state, inputs) {
      const updated = await apply("upgrade", inputs);
      if (!updated.ok) {
        throw new Error(reasonOf(updated));
      }
      return inputs;
    },
    async delete(_id, state) {
      const removed = await run(["uninstall", ...waitFor(state)], state);
      if (!removed.ok) {
        throw new Error(reasonOf(removed));
      }
    },
  };
}

function optionsOf(inputs: Values): readonly string[] {
  return [
    ...(inputs.createNamespace === true ? ["--create-namespace"] : []),
    ...(inputs.description === undefined
      ? []
      : [`--description=${String(inputs.description)}`]),
    ...waitFor(inputs),
    ...(inputs.waitForJobs === true ? ["--wait-for-jobs"] : []),
    "--values=-",
  ];
}

/** "defaultTimeoutSeconds = 300"; it waits unless skipAwait is set. */
function waitFor({ timeout = 300 }: Values): readonly string[] {
  return ["--wait", `--timeout=${Number(timeout)}s`];
}

/** As the library returns it: the command adds a word. */
function reasonOf({ stderr, reason }: Execution): string {
  return (
    stderr
      .trim()
      .replace(/^Error: (INSTALLATION|UPGRADE) FAILED: |^Error: /, "") || reason
  );
}
