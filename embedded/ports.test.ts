import { expect, test } from "vitest";
import { choosePorts } from "./ports.ts";

const BEFORE = { supervisor: null, services: {} };

test("two services cannot have the same port", async () => {
  const env = { HEARTH_SUPERVISOR_PORT: "4000" };
  await expect(choosePorts(env, BEFORE)).rejects.toThrow(
    "port 4000 is set for gateway and supervisor: set another one with HEARTH_SUPERVISOR_PORT=<port>.",
  );
});

test("a port of 0 is the previous one while it is free", async () => {
  const env = { HEARTH_GATEWAY_PORT: "0" };
  const { gateway } = await choosePorts(env, BEFORE);
  expect(gateway).toBeGreaterThan(0);
});
