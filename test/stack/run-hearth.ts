import { spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { projectRoot, type Stack } from "./stack.ts";

/** Runs `hearth …` against a stack, as an operator does. */
export async function hearth(
  stack: Stack,
  ...words: readonly string[]
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(
    process.execPath,
    [join(projectRoot, "bin", "hearth.js"), ...words],
    {
      cwd: projectRoot,
      env: { ...process.env, ...stack.env, NO_COLOR: "1" },
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  const exit = new Promise<number | null>((resolve) =>
    child.once("exit", resolve),
  );
  const [out, err, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    exit,
  ]);
  return { code, output: out + err };
}

/** One call to hearth-echo with a key. */
export function chat(stack: Stack, key: string): Promise<Response> {
  return fetch(`${stack.gatewayUrl}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({
      model: "hearth-echo",
      messages: [{ role: "user", content: "hello" }],
    }),
  });
}
