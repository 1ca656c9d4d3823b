import { expect, test } from "vitest";
import { MINUTE_MS } from "../../core/duration.ts";
import { PENDING_MINUTES, PendingSignIns } from "./pending-sign-ins.ts";

const pending = {
  provider: "home",
  redirectUri: "https://console.example.org/sign-in/with/home/callback",
  nonce: "n".repeat(48),
  verifier: "v".repeat(48),
  to: "/keys?page=2",
};

function opened() {
  let now = Date.now();
  return {
    signIns: new PendingSignIns(() => now),
    pass: (ms: number) => {
      now += ms;
    },
  };
}

test("a sign-in is used once, with its own state and cookie, and in time", () => {
  const { signIns, pass } = opened();
  const [mine, other] = [signIns.add(pending), signIns.add(pending)];
  expect(signIns.use(mine.state, undefined)).toBeUndefined();
  expect(signIns.use(mine.state, other.proof)).toBeUndefined();
  expect(signIns.use(other.state, mine.proof)).toBeUndefined();
  expect(
    new PendingSignIns(Date.now).use(mine.state, mine.proof),
  ).toBeUndefined();
  expect(signIns.use(mine.state, mine.proof)).toEqual(pending);
  expect(signIns.use(mine.state, mine.proof)).toBeUndefined();
  pass(PENDING_MINUTES * MINUTE_MS);
  expect(signIns.use(other.state, other.proof)).toBeUndefined();
});

test("clients that begin many sign-ins end none of another", () => {
  const { signIns } = opened();
  const mine = signIns.add(pending);
  for (let begun = 0; begun < 10_000; begun += 1) {
    signIns.add(pending);
  }
  expect(signIns.use(mine.state, mine.proof)).toEqual(pending);
});

test("a browser stores the cookie of a sign-in from any page", () => {
  const { signIns } = opened();
  const to = `/spend/calls?search=${"x".repeat(8000)}`;
  const { state, proof } = signIns.add({ ...pending, to });
  expect(proof.length).toBeLessThan(3500);
  expect(signIns.use(state, proof)).toEqual({ ...pending, to: "/" });
});
