import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { findPeers } from "./peers.ts";

const nowhere = mkdtempSync(join(tmpdir(), "hearth-bench-peers-"));
afterEach(() => rmSync(nowhere, { recursive: true, force: true }));

test("missing peers are named together, with the command that installs them", async () => {
  await expect(findPeers(["portkey", "litellm"], nowhere)).rejects.toThrow(
    "Portkey and LiteLLM are not installed: run `scripts/toolchain.sh peers`.",
  );
  await expect(findPeers(["litellm"], nowhere)).rejects.toThrow(
    "LiteLLM is not installed: run `scripts/toolchain.sh peers`.",
  );
  expect(await findPeers([], nowhere)).toEqual([]);
});
