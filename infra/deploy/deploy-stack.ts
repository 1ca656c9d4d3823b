import { PulumiCommand } from "@pulumi/pulumi/automation/cmd.js";
import { LocalWorkspace } from "@pulumi/pulumi/automation/localWorkspace.js";
import type { EngineEvent } from "@pulumi/pulumi/automation/events.js";
import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { containerLog, type EngineAddress } from "../engine.ts";
import { projectRoot } from "../project-files.ts";
import { stackProgram } from "../stack-program.ts";
import { withoutSidecars } from "./backend.ts";
import { findEngine } from "./pulumi-engine.ts";

interface StackOptions {
  readonly stackName: string;
  /** Directory of Pulumi.yaml and Pulumi.<stack>.yaml; the project's root by default. */
  readonly workDir?: string;
  /** Directory whose bin/ contains the engine; npm's by default, or the one on the PATH. */
  readonly pulumiRoot?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** As in Pulumi.yaml. */
export const PROJECT_NAME = "hearth";

/** Maximum number of parallel operations: over ssh each is a connection. */
export const PARALLEL = 4;

/** Opens the stack with the same program that `pulumi up` runs. */
export async function openStack(options: StackOptions): Promise<Stack> {
  const root = options.pulumiRoot ?? (await findEngine());
  const pulumiCommand = await PulumiCommand.get(
    root === undefined ? {} : { root, skipVersionCheck: true },
  );
  const env: Readonly<Record<string, string | undefined>> = {
    ...process.env,
    ...options.env,
  };
  const backendUrl = env["PULUMI_BACKEND_URL"];
  return LocalWorkspace.createOrSelectStack(
    {
      stackName: options.stackName,
      projectName: PROJECT_NAME,
      program: async () => ({ ...(await stackProgram()) }),
    },
    {
      workDir: options.workDir ?? projectRoot,
      pulumiCommand,
      envVars: {
        PULUMI_SKIP_UPDATE_CHECK: "true",
        ...options.env,
        ...(backendUrl === undefined
          ? {}
          : { PULUMI_BACKEND_URL: withoutSidecars(backendUrl) }),
      },
    },
  );
}

/** A resource whose operation failed, from the engine's events. */
export interface FailedResource {
  readonly urn: string;
  readonly container: string | null;
  readonly host: "a" | "b" | null;
}

/** Name and host of the failed container: the plugin's error contains neither, and no log lines. */
export function failedResource(event: EngineEvent): FailedResource | null {
  const metadata = event.resOpFailedEvent?.metadata;
  if (metadata === undefined) {
    return null;
  }
  const inputs = metadata.new?.inputs as
    { readonly name?: unknown } | undefined;
  const isContainer = metadata.type === "docker:index/container:Container";
  const host = /::host-([ab])::/.exec(String(metadata.provider ?? ""))?.[1];
  return {
    urn: metadata.urn,
    container:
      isContainer && typeof inputs?.name === "string" ? inputs.name : null,
    host: host === "a" || host === "b" ? host : null,
  };
}

/** The last log lines of a container, for the operator. Empty if it does not exist or cannot be reached. */
export async function lastLines(
  engine: EngineAddress,
  container: string,
): Promise<string> {
  try {
    return await containerLog(engine, container, 20);
  } catch {
    return "";
  }
}
