import { expect, test } from "vitest";
import { restoreAddress } from "./restore-address.ts";

const BACKUP_DATABASE_URL =
  "postgresql://backup:pw-backup@postgres:5432/hearth?sslmode=verify-full&sslrootcert=/run/hearth/ca.crt";

const addressOf = (RESTORE_DATABASE_URL: string) =>
  restoreAddress({ RESTORE_DATABASE_URL, BACKUP_DATABASE_URL });

test.each(["postgres:5432", "postgres"])(
  "an address of the supervisor's own server is reached with its TLS: %s",
  (server) => {
    expect(addressOf(`postgres://postgres:pw@${server}/hearth`)).toBe(
      `postgres://postgres:pw@${server}/hearth?sslmode=verify-full&sslrootcert=%2Frun%2Fhearth%2Fca.crt`,
    );
  },
);

test.each([
  "postgres://postgres:pw@postgres:5433/hearth",
  "postgres://postgres:pw@db.example.org:5432/hearth",
  "no address",
])("any other address is used as it is: %s", (address) => {
  expect(addressOf(address)).toBe(address);
});

test("parameters that are given are kept", () => {
  expect(
    new URL(
      addressOf(
        "postgres://postgres:pw@postgres:5432/hearth?sslmode=require",
      ) ?? "",
    ).searchParams.get("sslmode"),
  ).toBe("require");
});

test("without an address, or without an own one, nothing is added", () => {
  expect(restoreAddress({ BACKUP_DATABASE_URL })).toBeUndefined();
  const RESTORE_DATABASE_URL = "postgres://postgres:pw@postgres:5432/hearth";
  expect(restoreAddress({ RESTORE_DATABASE_URL })).toBe(RESTORE_DATABASE_URL);
});
