import { describe, expect, test } from "vitest";
import { holdToProbes } from "./probes.ts";
import { replayScenarios } from "./scenarios.ts";
import { serversUnderTest } from "./server-under-test.ts";
import { simulateDevices } from "./simulator.ts";
import { countTolerated } from "./tolerated.ts";

// The contract of a notes store: the embedded one always, and a real CouchDB when COUCHDB_URL names one.
describe.each(serversUnderTest())("$name", (server) => {
  const tolerance = countTolerated(server.embedded);
  holdToProbes(server, tolerance);
  replayScenarios(server, tolerance);
  test.runIf(server.embedded)("needed every difference that is tolerated", () =>
    expect(tolerance.unused()).toEqual([]),
  );
  simulateDevices(server);
});
