import { execute } from "../../core/execute.ts";
import { kubernetes, twoHosts } from "../config/stack-settings.ts";
import { forgetSettings, type Session } from "./session.ts";

interface Setting {
  readonly value: string;
  readonly secret: boolean;
  /** The key is a path into an object. */
  readonly path?: boolean;
}

/** Sets one setting of the stack. The value is passed on standard input: arguments are visible to every user of the machine. */
export async function setSetting(
  session: Pick<Session, "stack">,
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
  forgetSettings(session.stack);
}

/** Removes settings; missing ones are not an error. */
export async function removeSettings(
  { stack }: Pick<Session, "stack">,
  keys: readonly string[],
): Promise<void> {
  for (const key of keys) {
    await stack.removeConfig(`hearth:${key}`);
  }
  forgetSettings(stack);
}

/**
 * Changes the stack's settings from `known` to `wanted`; unchanged ones are not written. Objects and lists are written like
 * `pulumi config set --path` does, so that each part can be changed with it, and without the parts that were removed.
 */
export async function writeSettings(
  session: Pick<Session, "stack">,
  known: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string>>,
): Promise<void> {
  await removeSettings(
    session,
    Object.keys(known).filter((key) => !(key in wanted)),
  );
  for (const [key, value] of Object.entries(wanted)) {
    const before = known[key];
    if (before === value) {
      continue;
    }
    if (before !== undefined && isStructured(before)) {
      await removeSettings(session, [key]);
    }
    const leaves = leavesOf(key, value);
    if (twoHosts.secrets.includes(key) || kubernetes.secrets.includes(key)) {
      for (const [path, leaf] of leaves) {
        await setSetting(session, path, {
          value: leaf,
          secret: true,
          path: path !== key,
        });
      }
    } else {
      await session.stack.setAllConfig(
        Object.fromEntries(
          leaves.map(([path, leaf]) => [`hearth:${path}`, { value: leaf }]),
        ),
        true,
      );
    }
  }
  forgetSettings(session.stack);
}

/** Paths and values of the leaves of a setting; objects and lists are given as JSON. */
function leavesOf(path: string, text: string): readonly [string, string][] {
  if (!isStructured(text)) {
    return [[path, text]];
  }
  const value = JSON.parse(text) as object;
  return Object.entries(value).flatMap(([step, each]) =>
    leavesOf(
      Array.isArray(value) ? `${path}[${step}]` : `${path}.${step}`,
      typeof each === "string" ? each : JSON.stringify(each),
    ),
  );
}

function isStructured(text: string): boolean {
  return /^[[{]/.test(text);
}

/** Runs one command of the engine on the stack; throws its error output. */
export async function pulumi(
  { stack }: Pick<Session, "stack">,
  args: readonly string[],
  input = "",
): Promise<string> {
  const { workspace } = stack;
  const { ok, stdout, stderr, reason } = await execute(
    workspace.pulumiCommand.command,
    [...args, "--stack", stack.name, "--non-interactive"],
    {
      cwd: workspace.workDir,
      env: { ...process.env, ...workspace.envVars },
      input,
    },
  );
  if (!ok) {
    throw new Error(
      stderr.trim() ||
        `\`npx pulumi ${args[0]}\` failed without output (${reason}): run it manually, then the same command again.`,
    );
  }
  return stdout;
}
