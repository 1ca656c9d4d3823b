import { expect, test } from "vitest";
import { none, registerContainers } from "../test/infra/expected-inputs.ts";
import { validConfig } from "../test/infra/stack-config.ts";

const identity = `AGE-SECRET-KEY-1${"Q".repeat(58)}`;

test("only the data host's supervisor gets the target, and the identity and rclone's configuration as files", async () => {
  const containers = await registerContainers({
    ...validConfig,
    offsiteTarget: "nas:hearth",
    offsiteIdentity: identity,
    offsiteRcloneConfig: "[nas]\ntype = sftp\n",
  });
  const onData = containers["supervisor-a"] ?? none;
  expect(onData.inputs["envs"]).toEqual(
    expect.arrayContaining([
      "OFFSITE_TARGET=nas:hearth",
      "OFFSITE_IDENTITY_FILE=/run/hearth/OFFSITE_IDENTITY",
      "OFFSITE_RCLONE_CONFIG_FILE=/run/hearth/OFFSITE_RCLONE_CONFIG",
    ]),
  );
  expect(onData.files).toMatchObject({
    "/run/hearth/OFFSITE_IDENTITY": `0440 ${identity}`,
    "/run/hearth/OFFSITE_RCLONE_CONFIG": "0440 [nas]\ntype = sftp\n",
  });
  expect(containers["supervisor-b"]).toBeDefined();
  expect(JSON.stringify(containers["supervisor-b"])).not.toContain("OFFSITE");
});
