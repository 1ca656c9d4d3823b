import { expect, test } from "vitest";
import {
  Refusal,
  Unanswered,
  type AdminApi,
} from "../../../supervisor/gateway/admin-api.ts";
import { isOutage, recall, rememberAnswers } from "./known-answers.ts";

const AT = Date.UTC(2026, 10, 26, 14, 3);

/** A gateway that answers with the number of the request, or fails with `error`. */
function start() {
  const gateway = { error: null as Error | null, asked: [] as string[] };
  let silences = 0;
  let now = AT;
  const apiNamed = (name: string): AdminApi => ({
    address: "http://gateway",
    as: () => apiNamed(name),
    stream: () => Promise.reject(new Error("not used")),
    actingFor: () => apiNamed(name),
    ask: async (method, path) => {
      gateway.asked.push(`${name} ${method} ${path}`);
      if (gateway.error !== null) {
        throw gateway.error;
      }
      return gateway.asked.length;
    },
  });
  const api = rememberAnswers({
    api: apiNamed("patient"),
    hasty: apiNamed("hasty"),
    now: () => now,
    timeZone: "UTC",
    onSilent: () => void silences++,
    page: () => "/services/gateway",
  });
  return {
    api,
    gateway,
    silences: () => silences,
    pass: (ms: number) => void (now += ms),
  };
}

test.each([
  ["stored prompts", "/spend/calls/call-1/prompt"],
  ["entries of the audit log", "/audit?page_size=51"],
])("%s are not remembered", async (_, path) => {
  const { api, gateway } = start();
  expect(await api.ask("GET", path)).toBe(1);
  gateway.error = silent();
  await expect(recall(silent(), () => api.ask("GET", path))).rejects.toThrow(
    "was not opened before",
  );
});

const silent = () => new Unanswered("http://gateway", "no answer in time");

test("what is known is shown with its age and a link; what is not known is an error", async () => {
  const { api, gateway, pass, silences } = start();
  expect(await api.ask("GET", "/a")).toBe(1);
  pass(60_000);
  expect(await api.ask("GET", "/b")).toBe(2);
  gateway.error = silent();
  await expect(api.ask("GET", "/a")).rejects.toMatchObject({
    page: "/services/gateway",
  });
  expect(silences()).toBe(1);
  const shown = await recall(silent(), async (notice) => {
    const answers = [await api.ask("GET", "/b"), await api.ask("GET", "/a")];
    return { answers, notice: notice() };
  });
  expect(shown).toEqual({
    answers: [2, 1],
    notice: {
      text: "The gateway does not answer. This page shows its data of 14:03; changes are not possible.",
      href: "/services/gateway",
      link: "Open gateway",
    },
  });
  expect(gateway.asked).toHaveLength(3);
  await expect(recall(silent(), () => api.ask("GET", "/c"))).rejects.toThrow(
    Unanswered,
  );
});

test("a silent gateway is waited for only briefly until it answers, also by rejecting", async () => {
  const { api, gateway } = start();
  const ask = () => api.ask("GET", "/a").catch(() => null);
  gateway.error = silent();
  await ask();
  await ask();
  await api.ask("POST", "/a").catch(() => null);
  gateway.error = new Refusal("no", 400, null);
  await ask();
  await ask();
  expect(gateway.asked).toEqual([
    "patient GET /a",
    "hasty GET /a",
    "patient POST /a",
    "hasty GET /a",
    "patient GET /a",
  ]);
});

test("an unavailable database is named, with a link to the status", async () => {
  const { api } = start();
  await api.ask("GET", "/a");
  const outage = new Refusal("The database is unavailable.", 503, null);
  expect(isOutage(outage)).toBe(true);
  expect(isOutage(new Refusal("no", 400, null))).toBe(false);
  const notice = await recall(outage, async (latest) => {
    await api.ask("GET", "/a");
    return latest();
  });
  expect(notice).toEqual({
    text: "The database is unavailable. This page shows its data of 14:03; changes are not possible.",
    href: "/",
    link: "Open status",
  });
});

test("changes are never answered from memory", async () => {
  const { api, gateway } = start();
  await recall(silent(), () => api.ask("POST", "/a"));
  expect(gateway.asked).toEqual(["patient POST /a"]);
});
