import { describe, expect, test } from "vitest";
import { compareWithProbes } from "./probes.ts";
import { replayScenarios } from "./scenarios.ts";
import { serversUnderTest } from "./server-under-test.ts";
import { simulateDevices } from "./simulator.ts";
import { countTolerated } from "./tolerated.ts";

// The contract of a notes store: always tests the embedded one, and a real CouchDB too if COUCHDB_URL is set.
describe.each(serversUnderTest())("$name", (server) => {
  const tolerance = countTolerated(server.embedded);
  compareWithProbes(server, tolerance);
  replayScenarios(server, tolerance);
  test.runIf(server.embedded)("every tolerated difference occurs", () =>
    expect(tolerance.unused()).toEqual([]),
  );
  simulateDevices(server);
});
