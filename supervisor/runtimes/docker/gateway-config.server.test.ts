import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  MASTER_KEY,
  modelYaml,
  startStand,
  type Stand,
} from "../../../test/servers/gateway.ts";
import { checkGatewayConfig } from "./gateway-config.ts";

let stand: Stand;
let env: Readonly<Record<string, string>>;

beforeAll(async () => {
  stand = await startStand();
  env = {
    GATEWAY_URL: stand.gateway.url,
    PROXY_MASTER_KEY: MASTER_KEY,
  };
});
afterAll(() => stand?.stop());

function write(text: string): void {
  writeFileSync(join(stand.gateway.directory, "gateway.yaml"), text);
}

test("a gateway that would not start again says why, and is not restarted", async () => {
  write("model_list: many\n");
  await expect(checkGatewayConfig(env)).rejects.toThrow(
    /^the gateway was not restarted because it could not start again:\n.*gateway\.yaml:1/,
  );
  write(modelYaml(stand.provider.url));
  await checkGatewayConfig(env);
});

test("a gateway that cannot be asked is restarted", async () => {
  write("model_list: many\n");
  await checkGatewayConfig({});
  await checkGatewayConfig({ ...env, PROXY_MASTER_KEY: "sk-another" });
  await checkGatewayConfig({ ...env, GATEWAY_URL: "http://127.0.0.1:1" });
});
