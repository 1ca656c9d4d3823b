import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DeploymentAgents } from "../providers/outgoing-agent.ts";
import { testDeployment } from "../providers/stream-fixture.ts";
import { askRunner, MAX_ANSWER_BYTES } from "./probe.ts";

const PIECE = Buffer.alloc(1_048_576, " ");
/** More than the limit and all buffers on the way. */
const MAX_PIECES = 200;

let pieces = 0;
const endless = createServer((_, response) => {
  const write = (): void => {
    while (!response.destroyed && pieces < MAX_PIECES) {
      pieces += 1;
      if (!response.write(PIECE)) {
        response.once("drain", write);
        return;
      }
    }
    response.end();
  };
  write();
});

beforeAll(async () => {
  await new Promise<void>((resolve) => endless.listen(0, "127.0.0.1", resolve));
});

afterAll(() => {
  endless.closeAllConnections();
  endless.close();
});

test("the answer of a runner that does not end is not held in memory", async () => {
  const { port } = endless.address() as AddressInfo;
  const agents = new DeploymentAgents(1_000, MAX_ANSWER_BYTES);
  const deployment = testDeployment({ apiBase: `http://127.0.0.1:${port}/v1` });
  const asked = askRunner(agents, deployment)("/props");
  await expect(asked).rejects.toMatchObject({
    code: "UND_ERR_RES_EXCEEDED_MAX_SIZE",
  });
  expect(pieces).toBeLessThan(MAX_PIECES);
  await agents.destroy();
});
