import { expect, test } from "vitest";
import type { PricedDeployment } from "./catalog.ts";
import { createObservations, orderBy, type Session } from "./strategies.ts";

const SIZE = { inputTokens: 1, outputTokens: 1 };
const SESSIONS = 2_000;

const deployment = (id: string, weight: number) =>
  ({ id, weight, priceCard: null }) as PricedDeployment;
const DEPLOYMENTS = [
  deployment("a", 1),
  deployment("b", 1),
  deployment("c", 2),
];
const EVERY_SESSION = Array.from({ length: SESSIONS }, (_none, at): Session => {
  return { key: `session ${at}`, isNamed: true };
});

function firstFor(
  session: Session,
  among: readonly PricedDeployment[] = DEPLOYMENTS,
  seen = createObservations(),
  strategy: Parameters<typeof orderBy>[0] = "simple-shuffle",
): string | undefined {
  return orderBy(strategy, among, seen, SIZE, session)[0]?.id;
}

test("a session always has the same order, whoever asks and in which order deployments are listed", () => {
  for (const session of EVERY_SESSION.slice(0, 50)) {
    expect(firstFor(session, DEPLOYMENTS.toReversed())).toBe(firstFor(session));
  }
});

test("sessions are shared by weight", () => {
  const counts = new Map<string, number>();
  for (const session of EVERY_SESSION) {
    const id = firstFor(session) ?? "";
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  const shareOf = (id: string) => (counts.get(id) ?? 0) / SESSIONS;
  expect(shareOf("a")).toBeCloseTo(0.25, 1);
  expect(shareOf("b")).toBeCloseTo(0.25, 1);
  expect(shareOf("c")).toBeCloseTo(0.5, 1);
});

test("without a deployment, only its sessions move", () => {
  const rest = DEPLOYMENTS.filter(({ id }) => id !== "c");
  for (const session of EVERY_SESSION) {
    const home = firstFor(session);
    if (home !== "c") {
      expect(firstFor(session, rest)).toBe(home);
    }
  }
});

test("a named session stays at a busy deployment, a conversation goes where the strategy says", () => {
  const seen = createObservations();
  const [session = { key: "", isNamed: true }] = EVERY_SESSION;
  const home = firstFor(session) ?? "";
  seen.started(home);
  expect(firstFor(session, DEPLOYMENTS, seen, "least-busy")).toBe(home);
  const conversation = { ...session, isNamed: false };
  expect(firstFor(conversation, DEPLOYMENTS, seen, "least-busy")).not.toBe(
    home,
  );
});

test("a deployment that is too late, or has only failed, is not the fastest for a minute", () => {
  const clock = { at: 1_000_000 };
  const seen = createObservations(() => clock.at);
  const pair = DEPLOYMENTS.slice(0, 2);
  const fastest = () =>
    orderBy("latency-based-routing", pair, seen, SIZE, null)[0]?.id;
  seen.answered("a", 900);
  expect(fastest()).toBe("b");
  seen.failed("b", false);
  expect(fastest()).toBe("a");
  clock.at += 60_000;
  expect(fastest()).toBe("b");
  seen.answered("b", 100);
  seen.failed("b", false);
  expect(fastest()).toBe("b");
  seen.failed("b", true);
  expect(fastest()).toBe("a");
  seen.answered("b", 100);
  expect(fastest()).toBe("b");
});

test("what was observed a minute or more ago does not count again after the clock was set back", () => {
  const clock = { at: 10_000_000 };
  const seen = createObservations(() => clock.at);
  seen.failed("a", true);
  seen.missedResponses("a");
  clock.at -= 3_600_000;
  expect(seen.latencyMs("a")).toBe(0);
  expect(seen.lacksResponses("a")).toBe(false);
});
