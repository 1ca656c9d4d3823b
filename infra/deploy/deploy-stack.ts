import { PulumiCommand } from "@pulumi/pulumi/automation/cmd.js";
import { LocalWorkspace } from "@pulumi/pulumi/automation/localWorkspace.js";
import type { EngineEvent } from "@pulumi/pulumi/automation/events.js";
import type { Stack } from "@pulumi/pulumi/automation/stack.js";
import { containerLog, type EngineAddress } from "../engine.ts";
import { program } from "../index.ts";
import { projectRoot } from "../project-files.ts";
import { withoutSidecars } from "./backend.ts";
import { findEngine } from "./pulumi-engine.ts";

export interface StackOptions {
  readonly stackName: string;
  /** Holds Pulumi.yaml and Pulumi.<stack>.yaml; the project's root by default. */
  readonly workDir?: string;
  /** Directory whose bin/ has the engine; else npm's, or the one on the PATH. */
  readonly pulumiRoot?: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Of Pulumi.yaml. */
export const PROJECT_NAME = "hearth";

/** At most so many operations at once: each over ssh is a connection. */
export const PARALLEL = 4;

/** Opens the stack with the very program that `pulumi up` runs. */
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
      program: async () => ({ ...(await program()) }),
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

/** A resource that an operation failed on, found in the engine's events. */
export interface FailedResource {
  readonly urn: string;
  readonly container: string | null;
  readonly host: "a" | "b" | null;
}

/** The failed container's name and host: the plugin's error has neither, and no log line. */
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

/** The last lines that a container said, for the operator. Empty when it is gone or cannot be asked. */
export async function lastLines(
  engine: EngineAddress,
  container: string,
  lines = 20,
): Promise<string> {
  try {
    return await containerLog(engine, container, lines);
  } catch {
    return "";
  }
}
