import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  MASTER_KEY,
  modelYaml,
  startTestbed,
  type Testbed,
} from "../../../test/servers/gateway.ts";
import { checkGatewayConfig } from "./gateway-config.ts";

let testbed: Testbed;
let env: Readonly<Record<string, string>>;

beforeAll(async () => {
  testbed = await startTestbed();
  env = {
    GATEWAY_URL: testbed.gateway.url,
    PROXY_MASTER_KEY: MASTER_KEY,
  };
});
afterAll(() => testbed?.stop());

function write(text: string): void {
  writeFileSync(join(testbed.gateway.directory, "gateway.yaml"), text);
}

test("a gateway that could not start again is not restarted, with the reason", async () => {
  write("model_list: many\n");
  await expect(checkGatewayConfig(env)).rejects.toThrow(
    /^the gateway was not restarted because it could not start again:\n.*gateway\.yaml:1/,
  );
  write(modelYaml(testbed.provider.url));
  await checkGatewayConfig(env);
});

test("a gateway that does not support the request is restarted", async () => {
  write("model_list: many\n");
  await checkGatewayConfig({});
  await checkGatewayConfig({ ...env, PROXY_MASTER_KEY: "sk-another" });
  await checkGatewayConfig({ ...env, GATEWAY_URL: "http://127.0.0.1:1" });
});
