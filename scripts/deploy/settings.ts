import { spawn } from "node:child_process";
import type { Session } from "./session.ts";

export interface Setting {
  readonly value: string;
  readonly secret: boolean;
  /** The key is a path into an object. */
  readonly path?: boolean;
}

/** Sets one setting of the stack. The value goes in by standard input: arguments are seen by everybody on the machine. */
export async function setSetting(
  session: Session,
  key: string,
  { value, secret, path = false }: Setting,
): Promise<void> {
  await pulumi(
    session,
    [
      "config",
      "set",
      secret ? "--secret" : "--plaintext",
      ...(path ? ["--path"] : []),
      `hearth:${key}`,
    ],
    value,
  );
}

/** Removes settings; those that are not there are no error. */
export async function removeSettings(
  { stack }: Session,
  keys: readonly string[],
): Promise<void> {
  for (const key of keys) await stack.removeConfig(`hearth:${key}`);
}

/** One command of the engine on the stack; throws what it says when it fails. */
export async function pulumi(
  { stack }: Session,
  args: readonly string[],
  input = "",
): Promise<string> {
  const { workspace } = stack;
  const child = spawn(
    workspace.pulumiCommand.command,
    [...args, "--stack", stack.name, "--non-interactive"],
    {
      cwd: workspace.workDir,
      env: { ...process.env, ...workspace.envVars },
      stdio: ["pipe", "pipe", "pipe"],
    },
  );
  let said = "";
  let complained = "";
  child.stdout.on("data", (text) => (said += String(text)));
  child.stderr.on("data", (text) => (complained += String(text)));
  child.stdin.on("error", () => undefined).end(input);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  if (code !== 0)
    throw new Error(
      complained.trim() || `pulumi ${args[0]} ended with ${code}`,
    );
  return said;
}
