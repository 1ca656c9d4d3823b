import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type {
  Runtime,
  ServiceView,
} from "../../supervisor/runtimes/runtime.ts";
import { waitFor } from "./wait-for.ts";

/** Two services, "one" and "two" in the contract's words, that run and have written the line "<name> says hello". */
export interface RuntimeUnderTest {
  readonly runtime: Runtime;
  readonly one: string;
  readonly two: string;
  /** Kills the main process of a service, as a crash would. */
  readonly crash: (name: string) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** What holds for every runtime; run against each of them. */
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

    test("lists what it runs, and inspect shows the same", () => {
      const names = runtime.list().map(({ name }) => name);
      expect(names.toSorted()).toEqual([under.one, under.two].toSorted());
      for (const view of runtime.list()) {
        expect(runtime.inspect(view.name)).toEqual(view);
      }
    });

    test("tells of each that it runs, since when, and as which process", async () => {
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

    test("knows nothing of others", async () => {
      expect(runtime.inspect("nobody")).toBeUndefined();
      expect(await runtime.probe("nobody")).toBeUndefined();
      await expect(
        runtime.restart("nobody", "told", "operator"),
      ).rejects.toThrow('"nobody"');
    });

    test("gives the last lines of the output, oldest first", async () => {
      const logs = async () => await runtime.logs(under.one, 50);
      await waitFor("the line", async () =>
        (await logs()).includes(`${under.one} says hello`),
      );
      const all = await logs();
      expect(await runtime.logs(under.one, 1)).toEqual(all.slice(-1));
    });

    test("measures memory and processor time of what runs", async () => {
      const stats = await waitFor("a measurement", () =>
        runtime.stats(under.two),
      );
      expect(stats.memoryBytes).toBeGreaterThan(1_000_000);
      expect(stats.cpuSeconds).toBeGreaterThan(0);
    });

    test("restarts one when told, waits until it runs, and leaves the other alone", async () => {
      const before = await running(under.one);
      const other = await running(under.two);
      await runtime.restart(under.one, "asked by the test", "operator");
      const after = await running(under.one);
      expect(after.pid).not.toBe(before.pid);
      expect(after.since).toBeGreaterThanOrEqual(before.since);
      expect((await runtime.probe(under.two))?.pid).toBe(other.pid);
    });

    test("shows one that crashed and was started again, and counts it", async () => {
      const before = await running(under.two);
      await under.crash(under.two);
      const after = await running(under.two, before);
      expect(after.restarts).toBe(1);
      expect((await runtime.probe(under.two))?.pid).toBe(after.pid);
    });
  });
}
