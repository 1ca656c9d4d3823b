import { expect, test } from "vitest";
import { expectedCertificates } from "../test/infra/expected-inputs.ts";
import { rightConfig } from "../test/infra/stack-config.ts";
import { buildSupervisorArgs } from "./components/supervisor.ts";
import { readConfig } from "./config.ts";
import type { Hosts } from "./hosts.ts";

const identity = `AGE-SECRET-KEY-1${"Q".repeat(58)}`;

test("the data host's supervisor alone gets the target, and the identity and rclone's configuration as files", async () => {
  const read = readConfig({
    values: {
      ...rightConfig,
      offsiteTarget: "nas:hearth",
      offsiteIdentity: identity,
      offsiteRcloneConfig: "[nas]\ntype = sftp\n",
    },
    isSecret: () => true,
  });
  if (!read.ok) throw new Error(read.errors.join());
  const { config } = read;
  const hosts = {
    a: { name: "a", ...config.hosts.a },
    b: { name: "b", ...config.hosts.b },
  } as unknown as Hosts;
  const certificates = await expectedCertificates();
  const onData = buildSupervisorArgs(config, certificates, hosts, hosts.a);
  expect(onData.environment).toMatchObject({
    OFFSITE_TARGET: "nas:hearth",
    OFFSITE_IDENTITY_FILE: "/run/hearth/OFFSITE_IDENTITY",
    OFFSITE_RCLONE_CONFIG_FILE: "/run/hearth/OFFSITE_RCLONE_CONFIG",
  });
  const secrets = onData.files.filter(({ path }) => path.includes("OFFSITE"));
  expect(secrets.map(({ permissions }) => permissions)).toEqual([
    "0440",
    "0440",
  ]);
  const other = buildSupervisorArgs(config, certificates, hosts, hosts.b);
  expect(JSON.stringify(other.environment)).not.toContain("OFFSITE");
  expect(other.files.some(({ path }) => path.includes("OFFSITE"))).toBe(false);
});
