import { describe } from "vitest";
import { holdToProbes } from "./probes.ts";
import { replayScenarios } from "./scenarios.ts";
import { serversUnderTest } from "./server-under-test.ts";
import { simulateDevices } from "./simulator.ts";

// The contract of a notes store: the embedded one always, and a real CouchDB when COUCHDB_URL names one.
describe.each(serversUnderTest())("$name", (server) => {
  holdToProbes(server);
  replayScenarios(server);
  simulateDevices(server);
});
