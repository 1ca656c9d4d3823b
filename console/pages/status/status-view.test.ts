import { expect, test } from "vitest";
import type { CheckView } from "../../../supervisor/checks/watched.ts";
import type {
  Attention,
  ServiceStatus,
  Status,
} from "../../../supervisor/status.ts";
import { judge } from "../../../supervisor/verdict.ts";
import { countByPage } from "../attention.ts";
import { renderPage } from "../frame.ts";
import type { StatusFacts } from "./status-facts.ts";
import { lookOfStatus, viewStatus } from "./status-view.ts";

const AT = Date.UTC(2026, 10, 26, 12);

function check(
  name: string,
  kind: CheckView["kind"],
  text: string = "answered 200",
): CheckView {
  return {
    name,
    kind,
    state: "up",
    since: AT - 60_000,
    inhibitedBy: null,
    flapping: false,
    latest: {
      ok: true,
      level: "down",
      latencyMs: 3,
      text,
      at: AT,
      measures: {},
    },
    healing: null,
    note: null,
    service: null,
  };
}

const gateway: ServiceStatus = {
  name: "gateway",
  state: "running",
  since: AT - 60_000,
  pid: 7,
  port: 1,
  address: "http://127.0.0.1:4000",
  adopted: false,
  tookMs: 1,
  restarts: 0,
  reason: null,
  stats: null,
};

const conflict: Attention = {
  name: "vault home",
  about: { topic: "vault", id: "home" },
  level: "warning",
  text: "vault home has 2 notes in conflict",
  since: AT - 60_000,
  command: "hearth notes conflicts home",
  output: null,
  tried: [],
  silenced: null,
};

function facts(
  status: Partial<Status>,
  more: Partial<StatusFacts> = {},
): StatusFacts {
  const { services = [], checks = [], attention = [] } = status;
  return {
    status: {
      ...judge("running", services, attention, checks),
      phase: "running",
      at: AT,
      supervisor: {
        pid: 1,
        address: "",
        since: AT,
        home: null,
        release: null,
        memoryBytes: 1,
      },
      services,
      checks,
      attention,
      notices: [],
      offsite: null,
      ...status,
    },
    bars: new Map(),
    records: [],
    incidents: [],
    jobs: [],
    spend: { kind: "unknown" },
    devices: undefined,
    timeZone: "UTC",
    ...more,
  };
}

function html(
  known: StatusFacts,
  role: "admin" | "viewer" = "admin",
): Promise<string> {
  const { status } = known;
  return renderPage(
    {
      title: status.verdict,
      look: lookOfStatus(status),
      current: "/",
      signedIn: true,
      caller: { role, name: "operator" },
      refreshes: null,
      json: null,
      message: null,
      notice: null,
      theme: "system",
      timeZone: null,
      hearth: "npx hearth",
      needs: countByPage(status.attention),
    },
    "status",
    viewStatus(known),
  );
}

test("services, models and checks are separate; only services have a response time, only the others a result", () => {
  const record = {
    looks: 1,
    failures: 0,
    upMs: 1,
    downMs: 0,
    apartMs: 0,
    p50: 0,
    p95: 7,
    p99: 7,
    availability: 100,
  };
  const checks = [
    check("gateway", "http"),
    check("gateway-ready", "http"),
    check("models", "models", "3 models answer"),
    check("postgres", "postgres"),
    check("disk", "disk", "62 % free"),
  ];
  const { groups } = viewStatus(
    facts(
      { checks, services: [gateway] },
      { records: checks.map(({ name }) => ({ name, ...record })) },
    ),
  );
  expect(
    groups.map(({ title, rows }) => [
      title,
      ...rows.map(({ name, latency, text }) => [name, latency, text]),
    ]),
  ).toEqual([
    ["Services", ["gateway", "p95 7 ms", ""], ["postgres", "p95 7 ms", ""]],
    ["Models", ["models", "", "3 models answer"]],
    [
      "Checks",
      ["gateway-ready", "p95 7 ms", "answered 200"],
      ["disk", "", "62 % free"],
    ],
  ]);
});

test("heading, list and navigation name the same findings, with the page that helps", async () => {
  const text = await html(facts({ attention: [conflict] }));
  expect(text).toContain(
    "One thing needs attention; every service answers.</h1>",
  );
  expect(text).not.toContain("No action needed.");
  expect(text).toContain('<a href="/notes/home">Open home</a>');
  expect(text).toMatch(
    /href="\/notes">Notes<span class="badge">1<span class="unseen"> needs attention/,
  );
});

test("commands are shown as they are typed on this machine", async () => {
  const command = "hearth logs notes; hearth restart notes";
  const text = await html(facts({ attention: [{ ...conflict, command }] }));
  expect(text).toContain(">npx hearth logs notes; npx hearth restart notes<");
});

test("an alert about a service links to its page and its restart", () => {
  const attention: Attention = {
    ...conflict,
    about: { topic: "service", id: "gateway" },
  };
  const here = viewStatus(
    facts({ attention: [attention], services: [gateway] }),
  );
  expect(here.attention).toMatchObject([
    {
      link: { href: "/services/gateway", text: "Open gateway" },
      restart: "gateway",
    },
  ]);
  const elsewhere = viewStatus(facts({ attention: [attention] }));
  expect(elsewhere.attention).toMatchObject([{ restart: null }]);
});

test.each([
  [{ vaults: [], devices: [] }, "Run <code>npx hearth notes add notes</code>"],
  [
    { vaults: ["home", "work"], devices: [] },
    "run <code>npx hearth notes setup-uri home</code>",
  ],
])("without devices, %j leads to the next step", async (devices, step) => {
  expect(await html(facts({}, { devices }))).toContain(step);
});

test("what is recommended does not look like a fault", async () => {
  const offsite = { text: "There are no off-site backups.", command: "x" };
  const text = await html(facts({ offsite }));
  expect(text).toContain("<h2>Recommended</h2>");
  expect(text).toContain("All is well.</h1>");
  expect(text).not.toContain('class="warn"');
});

test("a month without calls links to where a call can be sent, as far as the role allows", async () => {
  const none = facts(
    {},
    {
      spend: {
        kind: "known",
        at: AT,
        spend: {
          spend: 0,
          before: 0,
          calls: 0,
          failed: 0,
          cached: 0,
          saved: 0,
          days: [],
          payers: [],
        },
      },
    },
  );
  const [admin, viewer] = [await html(none), await html(none, "viewer")];
  expect(admin).toContain("No calls this month yet.");
  expect(admin).toContain("create a key</a>: its page");
  for (const page of [admin, viewer]) {
    expect(page).toContain('from the <a href="/playground">playground</a>');
    expect(page).not.toContain("curl");
  }
  expect(viewer).not.toContain("/keys/new");
});
