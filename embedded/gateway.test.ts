import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryHome } from "../test/supervisor/temporary-home.ts";
import { gatewayService } from "./gateway.ts";
import { createHome } from "../supervisor/home/home.ts";
import { readOrCreateSecrets } from "../supervisor/home/secrets.ts";

test("a gateway with an invalid configuration is not restarted, and the mistake is reported", async () => {
  const place = temporaryHome();
  const config = join(place.directory, "gateway.yaml");
  const before = process.env["HEARTH_GATEWAY_CONFIG"];
  process.env["HEARTH_GATEWAY_CONFIG"] = config;
  try {
    createHome(place.home);
    const secrets = readOrCreateSecrets(place.home);
    const { validate } = gatewayService(
      place.home,
      { gateway: 1, postgres: 2, supervisor: 3 },
      false,
      secrets,
    );
    writeFileSync(config, "model_list: 3\n");
    await expect(validate?.()).rejects.toMatchObject({
      sentences: [
        "the gateway was not restarted because it could not start again:",
        expect.stringMatching(/gateway\.yaml.*model_list/),
      ],
    });
    writeFileSync(config, "model_list: []\n");
    await expect(validate?.()).resolves.toBeUndefined();
  } finally {
    if (before === undefined) {
      delete process.env["HEARTH_GATEWAY_CONFIG"];
    } else {
      process.env["HEARTH_GATEWAY_CONFIG"] = before;
    }
    place.remove();
  }
});
