import type {
  OpMap,
  Stack,
  UpOptions,
} from "@pulumi/pulumi/automation/stack.js";
import { readConfig, type HearthConfig } from "../../infra/config.ts";
import type { EngineAddress } from "../../infra/engine.ts";
import { parallel } from "../deploy-stack.ts";
import { dropPendingCreates } from "./state.ts";

/** What every verb of `npm run deploy` works with. */
export interface Session {
  readonly stack: Stack;
  readonly engines: Readonly<Record<"a" | "b", EngineAddress>>;
  /** One line for the operator. */
  readonly say: (line: string) => void;
  /** The engine's options: how much at once, who hears of events and output. */
  readonly options: Pick<
    UpOptions,
    "parallel" | "onEvent" | "onOutput" | "color"
  >;
}

/** A session on an open stack. */
export async function openSession(
  stack: Stack,
  say: Session["say"],
  options: Partial<Session["options"]> = {},
): Promise<Session> {
  return {
    stack,
    engines: await readEngines(stack),
    say,
    options: { parallel, ...options },
  };
}

/** The stack's configuration as the program reads it. Throws a sentence for each mistake. */
export async function readSettings({ stack }: Session): Promise<HearthConfig> {
  const own = Object.entries(await stack.getAllConfig()).flatMap(
    ([key, value]) =>
      key.startsWith("hearth:")
        ? [[key.slice("hearth:".length), value] as const]
        : [],
  );
  const secrets = new Set(
    own.filter(([, { secret }]) => secret === true).map(([key]) => key),
  );
  const read = readConfig({
    values: Object.fromEntries(own.map(([key, { value }]) => [key, value])),
    isSecret: (key) => secrets.has(key),
  });
  if (!read.ok) throw new Error(read.errors.join("\n"));
  return read.config;
}

/** Brings the hosts to what program and configuration say, after what an interrupted run left in the state is cleared. */
export async function bringUp(
  session: Session,
  options: Partial<UpOptions> = {},
): Promise<OpMap | undefined> {
  await dropPendingCreates(session);
  const { summary } = await session.stack.up({
    ...session.options,
    ...options,
  });
  return summary.resourceChanges;
}

/** Mistakes in the configuration are the program's to tell: here a missing host is an empty address. */
async function readEngines(stack: Stack): Promise<Session["engines"]> {
  const all = await stack.getAllConfig();
  const hosts = JSON.parse(all["hearth:hosts"]?.value ?? "{}") as Partial<
    Record<"a" | "b", { docker?: string; sshOpts?: readonly string[] }>
  >;
  const of = (name: "a" | "b") => ({
    endpoint: hosts[name]?.docker ?? "",
    sshOpts: hosts[name]?.sshOpts ?? [],
  });
  return { a: of("a"), b: of("b") };
}
