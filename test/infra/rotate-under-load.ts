import { expect } from "vitest";
import { rotate } from "../../infra/deploy/rotate.ts";
import type { RotationKind } from "../../infra/config/rotation.ts";
import type { Session } from "../../infra/deploy/session.ts";
import { callSteadily, expectNoFailedCall, MAX_WAIT_MS } from "./callers.ts";
import { say, sessionOf, timed } from "./day-two.ts";
import { EDGES, type Running } from "./running.ts";
import { expectNowhere } from "./secrets.ts";
import type { Testbed } from "./testbed.ts";
import { watchArguments } from "./watch-arguments.ts";

const GRACE_SECONDS = 3_600;

/** A rotated secret, before and after. */
interface Rotated {
  readonly old: string;
  readonly now: string;
}

/** Rotates secrets under 50 calls a second, a fifth of them streams, through both edges: no call fails, no server with data is replaced. */
export class RotationsUnderLoad {
  readonly #running: () => Running;
  readonly #secrets: string[] = [];
  readonly #events: string[] = [];
  readonly #commands: string[] = [];

  constructor(running: () => Running) {
    this.#running = running;
  }

  /** Rotates the secrets of these settings. */
  async rotate(
    kind: RotationKind,
    names: readonly string[],
    by = (session: Session) =>
      rotate(session, kind, { graceSeconds: GRACE_SECONDS }),
  ): Promise<readonly Rotated[]> {
    const { testbed, key } = this.#running();
    const values = async () => {
      const settings = await testbed.stack.getAllConfig();
      return names.map((name) => settings[`hearth:${name}`]?.value ?? "");
    };
    const old = await values();
    const before = await serverIds(testbed);
    const session = await sessionOf(testbed, this.#events);
    const watch = watchArguments("pulumi", "docker");
    const load = callSteadily({ baseUrls: EDGES, key, perSecond: 50 });
    await timed(`rotate ${kind}`, () => by(session)).catch(
      async (error: unknown) => {
        await load.stop();
        await watch.stop();
        throw error;
      },
    );
    const report = await load.stop();
    this.#commands.push(await watch.stop());
    expectNoFailedCall(report, MAX_WAIT_MS.rotation, say);
    expect(await serverIds(testbed)).toBe(before);
    const now = await values();
    this.#secrets.push(...old, ...now);
    return old.map((each, index) => ({ old: each, now: now[index] ?? "" }));
  }

  /** Gives a provider another key. */
  async rotateProvider(name: string, key: string): Promise<void> {
    await this.rotate("provider", [], (session) =>
      rotate(session, "provider", {
        graceSeconds: GRACE_SECONDS,
        provider: { name, key },
      }),
    );
    this.#secrets.push(key);
  }

  /** Keeps the output of a command for `expectNoSecrets`. */
  hear(output: string): void {
    this.#events.push(output);
  }

  /** Expects none of the secrets, old or new, in a log, an event, the state, an argument or `docker inspect`. */
  async expectNoSecrets(): Promise<void> {
    expect(this.#secrets.length).toBeGreaterThan(5);
    await expectNowhere(this.#running().testbed, this.#secrets, {
      "events and output": this.#events.join("\n"),
      "a command's arguments": this.#commands.join("\n"),
    });
  }
}

/** Ids of the servers whose password is changed while they run. */
const serverIds = (testbed: Testbed): Promise<string> =>
  testbed.docker(
    "a",
    "inspect",
    "--format",
    "{{.Id}}",
    "hearth-postgres",
    "hearth-redis",
    "hearth-couchdb",
  );
