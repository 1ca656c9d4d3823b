import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type {
  Runtime,
  ServiceView,
} from "../../supervisor/runtimes/runtime.ts";
import { waitFor } from "../wait-for.ts";

/** Two running services, "one" and "two" in the contract, that have written the line "<name> says hello". */
interface RuntimeUnderTest {
  readonly runtime: Runtime;
  readonly one: string;
  readonly two: string;
  /** Kills the main process of a service, as a crash would. */
  readonly crash: (name: string) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Tests that every runtime must pass. */
export function testRuntimeContract(
  kind: string,
  setUp: () => Promise<RuntimeUnderTest>,
): void {
  describe(`a runtime (${kind})`, () => {
    let under: RuntimeUnderTest;
    let runtime: Runtime;

    beforeEach(async () => {
      under = await setUp();
      ({ runtime } = under);
      for (const name of [under.one, under.two]) {
        await running(name);
      }
    });
    afterEach(() => under?.close());

    function running(name: string, other?: ServiceView): Promise<ServiceView> {
      return waitFor(`${name} to run`, () => {
        const view = runtime.inspect(name);
        return (
          view?.state === "running" &&
          (other === undefined || view.pid !== other.pid) &&
          view
        );
      });
    }

    test("list and inspect return the same services", () => {
      const names = runtime.list().map(({ name }) => name);
      expect(names.toSorted()).toEqual([under.one, under.two].toSorted());
      for (const view of runtime.list()) {
        expect(runtime.inspect(view.name)).toEqual(view);
      }
    });

    test("reports each service's state, start time and process id", async () => {
      const view = await running(under.one);
      expect(view).toMatchObject({
        name: under.one,
        state: "running",
        restarts: 0,
        reason: null,
      });
      expect(view.pid).toBeGreaterThan(0);
      expect(view.since).toBeLessThanOrEqual(Date.now());
      expect(view.since).toBeGreaterThan(Date.now() - 600_000);
    });

    test("unknown services are not found", async () => {
      expect(runtime.inspect("unknown")).toBeUndefined();
      expect(await runtime.probe("unknown")).toBeUndefined();
      await expect(
        runtime.restart("unknown", "test", "operator"),
      ).rejects.toThrow('"unknown"');
    });

    test("returns the last lines of the output, oldest first", async () => {
      const logs = async () => await runtime.logs(under.one, 50);
      await waitFor("the line", async () =>
        (await logs()).includes(`${under.one} says hello`),
      );
      const all = await logs();
      expect(await runtime.logs(under.one, 1)).toEqual(all.slice(-1));
    });

    test("measures memory and CPU time of a running service", async () => {
      const stats = await waitFor("a measurement", () =>
        runtime.stats(under.two),
      );
      expect(stats.memoryBytes).toBeGreaterThan(1_000_000);
      expect(stats.cpuSeconds).toBeGreaterThan(0);
    });

    test("restart waits until the service runs and leaves the others alone", async () => {
      const before = await running(under.one);
      const other = await running(under.two);
      await runtime.restart(under.one, "requested by the test", "operator");
      const after = await running(under.one);
      expect(after.pid).not.toBe(before.pid);
      expect(after.since).toBeGreaterThanOrEqual(before.since);
      expect((await runtime.probe(under.two))?.pid).toBe(other.pid);
    });

    test("a crashed service is restarted, and the restart is counted", async () => {
      const before = await running(under.two);
      await under.crash(under.two);
      const after = await running(under.two, before);
      expect(after.restarts).toBe(1);
      expect((await runtime.probe(under.two))?.pid).toBe(after.pid);
    });
  });
}
