import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { remote, type Device } from "./devices.ts";
import type { RunningServer, ServerUnderTest } from "./server-under-test.ts";
import { slowLink } from "./slow-link.ts";
import { ask } from "./start-notes.ts";
import {
  newVaultDevice,
  type Vault,
  type VaultDevice,
} from "./vault-device.ts";

let time = 1_800_000_000_000;
export const clock = (): number => (time += 1000);

export async function createVault(
  url: string,
  name: string,
  user: { readonly name: string; readonly password: string },
): Promise<Device> {
  await ask(`${url}/${name}`, { method: "DELETE", user });
  await ask(`${url}/${name}`, { method: "PUT", user });
  return remote(url, name, user);
}

/** Syncs all devices twice, after which they have the same state. */
export async function syncAll(
  server: Device,
  ...devices: readonly VaultDevice[]
): Promise<void> {
  for (const device of [...devices, ...devices]) {
    await device.sync(server);
  }
}

export async function expectSame(
  server: Device,
  devices: readonly VaultDevice[],
  expected: Vault,
): Promise<void> {
  for (const device of devices) {
    expect(await device.files(server)).toEqual(expected);
    expect(await device.conflicted()).toEqual([]);
  }
}

/** Tests devices that behave like the LiveSync plugin and must end with the same vault. */
export function simulateDevices({ start }: ServerUnderTest): void {
  describe("devices that behave like LiveSync", () => {
    let running: RunningServer;

    beforeAll(async () => {
      running = await start();
    });

    afterAll(async () => {
      await running.stop();
    });

    const vault = async (name: string): Promise<Device> =>
      await createVault(running.url, `vault-sim-${name}`, running.admin);

    const devices = (count: number): VaultDevice[] =>
      Array.from({ length: count }, () => newVaultDevice(clock));

    test("three devices write, edit, rename and delete, and end with the same vault", async () => {
      const server = await vault("three");
      const [a, b, c] = devices(3) as [VaultDevice, VaultDevice, VaultDevice];
      await a.write("one.md", "from a");
      await b.write("two.md", "from b");
      await c.write("three.md", "from c");
      await syncAll(server, a, b, c);
      await a.write("two.md", "edited by a");
      await b.rename("three.md", "folder/drei.md");
      await c.remove("one.md");
      await syncAll(server, a, b, c);
      await expectSame(server, [a, b, c], {
        "two.md": "edited by a",
        "folder/drei.md": "from c",
      });
    });

    test.each([
      [
        "merged by the client",
        (one: string, other: string) => [one, other].sort().join("+"),
        "left+right",
      ],
      ["resolved by hand", () => "by hand", "by hand"],
      ["resolved by the newer file", "newer" as const, "right"],
    ])("edits on two devices, %s", async (how, choice, expected) => {
      const server = await vault(`conflict-${how.split(" ").at(-1)}`);
      const [left, right] = devices(2) as [VaultDevice, VaultDevice];
      await left.write("note.md", "base");
      await syncAll(server, left, right);
      await left.write("note.md", "left");
      await right.write("note.md", "right");
      await syncAll(server, left, right);
      expect(await left.conflicted()).toHaveLength(1);
      expect(await right.conflicted()).toEqual(await left.conflicted());
      await left.resolve(server, choice);
      await syncAll(server, left, right);
      await expectSame(server, [left, right], { "note.md": expected });
    });

    test("a file of 45 MB arrives on another device byte for byte", async () => {
      const server = await vault("large");
      const [a, b] = devices(2) as [VaultDevice, VaultDevice];
      const text = Array.from({ length: 450 }, (_each, index) =>
        `${index}:`.padEnd(100_000, String.fromCharCode(97 + (index % 26))),
      ).join("");
      await a.write("large.bin", text);
      await syncAll(server, a, b);
      const { "large.bin": arrived } = await b.files(server);
      expect(arrived === text).toBe(true);
    });

    test("a device that was offline during a week of edits catches up, and others receive its edits", async () => {
      const server = await vault("week");
      const [home, away] = devices(2) as [VaultDevice, VaultDevice];
      for (let n = 0; n < 10; n += 1) {
        await home.write(`n${n}.md`, "old");
      }
      await syncAll(server, home, away);
      for (let day = 0; day < 7; day += 1) {
        for (let n = 0; n < 5; n += 1) {
          await home.write(`n${n}.md`, `day ${day}`);
          await home.sync(server);
        }
      }
      await home.remove("n4.md");
      await away.write("n7.md", "written away");
      await away.rename("n8.md", "moved away.md");
      await syncAll(server, home, away);
      await expectSame(server, [home, away], {
        "n0.md": "day 6",
        "n1.md": "day 6",
        "n2.md": "day 6",
        "n3.md": "day 6",
        "n5.md": "old",
        "n6.md": "old",
        "n7.md": "written away",
        "n9.md": "old",
        "moved away.md": "old",
      });
    });

    test("devices refill a recreated remote completely", async () => {
      const server = await vault("rebuilt");
      const [a, b] = devices(2) as [VaultDevice, VaultDevice];
      await a.write("one.md", "1");
      await b.write("two.md", "2");
      await syncAll(server, a, b);
      const recreated = await vault("rebuilt");
      await a.write("three.md", "3");
      await syncAll(recreated, a, b);
      await expectSame(recreated, [a, b], {
        "one.md": "1",
        "two.md": "2",
        "three.md": "3",
      });
    });

    test("devices end with the same vault over a link that adds 80 ms each way", async () => {
      await vault("slow");
      const link = await slowLink(running.url, 80);
      try {
        const server = remote(link.url, "vault-sim-slow", running.admin);
        const [a, b] = devices(2) as [VaultDevice, VaultDevice];
        await a.write("one.md", "1");
        await a.sync(server);
        await b.sync(server);
        await expectSame(server, [a, b], { "one.md": "1" });
      } finally {
        link.close();
      }
    });
  });
}
