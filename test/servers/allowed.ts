/** Throws in the project `unit`, whose tests share a process and its modules, and which starts no Postgres (vitest.config.ts). */
export function serversAllowed(): void {
  if (process.env["TEST_PROJECT"] === "unit") {
    throw new Error(
      "This test starts a real server: name its file *.server.test.ts.",
    );
  }
}
