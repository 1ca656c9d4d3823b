import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readNotesState } from "../../supervisor/vaults/notes-state.ts";
import { fillDisk, freeDisk, createSmallDisk } from "../servers/small-disk.ts";
import {
  openFaultTestbed,
  type FaultTestbed,
} from "../watching/fault-testbed.ts";
import { hearth } from "./run-hearth.ts";
import { pressCtrlC } from "./stack.ts";
import { waitFor } from "../wait-for.ts";

const disk = createSmallDisk(1);
disk?.remove();

const rhythm = {
  every: "1s",
  timeout: "2s",
  cooldown: "1s",
  grace: "1s",
  max: 2,
};
const PATIENCE = { withinMs: 60_000, everyMs: 100 };
const large = { data: "x".repeat(4_000_000) };

describe.skipIf(disk === undefined)("the embedded stack on a full disk", () => {
  let testbed: FaultTestbed;
  const charged: string[] = [];

  beforeAll(async () => {
    testbed = await openFaultTestbed(rhythm, true);
    expect((await notes("PUT", "full")).status).toBe(201);
    expect((await notes("PUT", "full/kept", { n: 1 })).status).toBe(201);
    expect(await call()).toBe(200);
    const state = join(testbed.home, "notes-state.json");
    await waitFor(
      "the first vault",
      () => existsSync(state) && readNotesState(state).firstVaultMade,
      PATIENCE,
    );
    await waitFor("all to be up", isUp, PATIENCE);
  }, 180_000);
  afterAll(() => testbed?.close(), 120_000);

  async function notes(
    method: string,
    path: string,
    body?: object,
  ): Promise<Response> {
    const { notesAdminPassword } = testbed.stack.secrets();
    const login = Buffer.from(`admin:${notesAdminPassword}`).toString("base64");
    return await fetch(`${testbed.stack.notesUrl}/${path}`, {
      method,
      headers: {
        authorization: `Basic ${login}`,
        "content-type": "application/json",
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(PATIENCE.withinMs),
    });
  }

  /** A call that is never answered from a cache. */
  async function call(): Promise<number> {
    const answer = await fetch(
      `${testbed.stack.gatewayUrl}/v1/chat/completions`,
      {
        method: "POST",
        headers: {
          authorization: `Bearer ${testbed.stack.secrets()["masterKey"]}`,
          "content-type": "application/json",
        },
        body: JSON.stringify({
          model: "hearth-echo",
          messages: [{ role: "user", content: `call ${charged.length}` }],
        }),
        signal: AbortSignal.timeout(PATIENCE.withinMs),
      },
    );
    const body = (await answer.json()) as object;
    if (answer.status === 200) {
      charged.push(answer.headers.get("x-hearth-call-id") ?? "");
    } else {
      expect(body).toMatchObject({ error: { message: expect.any(String) } });
    }
    return answer.status;
  }

  async function isUp(): Promise<boolean> {
    const { services, checks } = await testbed.status();
    return (
      services.every(({ state }) => state === "running") &&
      checks.every(({ state }) => state === "up")
    );
  }

  async function isDiskDown(): Promise<boolean> {
    const { checks } = await testbed.status();
    return checks.some(
      ({ name, state }) => name === "disk" && state === "down",
    );
  }

  async function untilCharged(): Promise<void> {
    await waitFor(
      "every call in the ledger",
      async () => {
        const rows = await testbed.stack.ledger<{ request_id: string }>(
          "SELECT request_id FROM spend_log",
        );
        const ids = rows.map(({ request_id }) => request_id);
        return charged.every((id) => ids.includes(id));
      },
      PATIENCE,
    );
  }

  test("every program responds, an alert is sent, and operation resumes as soon as there is space", async () => {
    const before = (await testbed.status()).services;
    const from = Date.now();
    fillDisk(testbed.home);
    for (let count = 0; count < 30; count += 1) {
      expect(await call()).toBe(200);
      fillDisk(testbed.home);
    }
    expect((await notes("GET", "full/kept")).status).toBe(200);
    expect((await notes("PUT", "full/large", large)).status).toBe(507);
    await waitFor("the disk to be down", isDiskDown, PATIENCE);
    const page = await fetch(testbed.stack.supervisorUrl, {
      headers: testbed.stack.asOperator(),
    });
    expect(page.status).toBe(200);
    // Postgres is on the same disk, so the gateway may report it, too.
    expect(await page.text()).toMatch(/\bdisk (and \S+ )?(is|are) down\./i);
    expect(await hearth(testbed.stack, "status")).toMatchObject({
      code: 1,
      output: expect.stringContaining("disk is down since"),
    });
    await waitFor(
      "the alert",
      () =>
        testbed.messages.some((text) =>
          text.startsWith("raised: disk is down"),
        ),
      PATIENCE,
    );

    freeDisk(testbed.home);
    await waitFor("all to be up", isUp, PATIENCE);
    expect(await call()).toBe(200);
    expect((await notes("PUT", "full/large", large)).status).toBe(201);
    await waitFor(
      "the end of the alert",
      () =>
        testbed.messages.some((text) =>
          text.startsWith("resolved: disk is down"),
        ),
      PATIENCE,
    );
    await untilCharged();
    const { services } = await testbed.status();
    expect(services.map(({ name, pid }) => [name, pid])).toEqual(
      before.map(({ name, pid }) => [name, pid]),
    );
    expect(
      (await testbed.since(from)).map(({ name, to }) => `${name} ${to}`),
    ).toEqual(expect.arrayContaining(["disk down", "disk alarm", "disk up"]));
    expect(
      testbed.messages.filter((text) => !/(disk|gateway-ready) is /.test(text)),
    ).toEqual([]);
  });

  test("programs killed on a full disk recover when there is space", async () => {
    fillDisk(testbed.home);
    for (const name of ["notes", "gateway", "postgres"]) {
      process.kill(testbed.pidOf(name), "SIGKILL");
    }
    await waitFor("the disk to be down", isDiskDown, PATIENCE);
    await waitFor(
      "the notes to be read",
      async () => {
        fillDisk(testbed.home);
        const answer = await notes("GET", "full/kept").catch(() => undefined);
        return answer?.status === 200;
      },
      PATIENCE,
    );
    freeDisk(testbed.home);
    await waitFor("all to be up", isUp, PATIENCE);
    expect(await call()).toBe(200);
    expect((await notes("GET", "full/kept")).status).toBe(200);
    await untilCharged();
    const { services } = testbed.stack.run();
    expect(
      Object.entries(services).map(([name, { pid }]) => [name, pid]),
    ).toEqual(
      (await testbed.status()).services.map(({ name, pid }) => [name, pid]),
    );
  });

  test("a killed supervisor takes its services over, and its stop is no crash", async () => {
    const { supervisor } = testbed.stack.run();
    const before = (await testbed.status()).services;
    process.kill(supervisor?.pid ?? 0, "SIGKILL");
    fillDisk(testbed.home);
    const again = await testbed.startAgain();
    const { services } = await testbed.status();
    expect(services.map(({ pid, adopted }) => [pid, adopted])).toEqual(
      before.map(({ pid }) => [pid, true]),
    );
    fillDisk(testbed.home);
    pressCtrlC(again);
    await again.exited;
    expect(again.output()).toContain(
      "Hearth stopped; keys, spend and notes are kept.",
    );
  });
});
