import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { HOUR_MS } from "../../../core/duration.ts";
import { configSchema } from "../../../supervisor/config/schema.ts";
import { alertsHeading, viewAlerts, type AlertsFacts } from "./alerts-view.ts";
import { CHANNEL_SETUPS, viewSetup } from "./channel-setup.ts";

const now = Date.UTC(2026, 10, 21, 10);

const alarm = {
  fingerprint: "check:gateway",
  level: "down",
  subject: "gateway",
  text: "gateway is down",
  command: "hearth check gateway",
} as const;

/** Channels whose every setting that may be secret has the word SECRET. */
const { notify } = configSchema.parse({
  notify: [
    {
      kind: "webhook",
      url: "https://user:SECRET@hook.example.org/SECRET?t=SECRET",
      token: "SECRET",
    },
    { kind: "ntfy", url: "https://ntfy.example.org/SECRET", token: "SECRET" },
    { kind: "slack", url: "https://hooks.slack.com/services/SECRET" },
    {
      kind: "smtp",
      host: "mail.example.org",
      user: "SECRET",
      password: "SECRET",
      from: "Hearth <hearth@example.org>",
      to: "me@example.org",
      fallback: true,
    },
  ],
});

function factsOf(change: Partial<AlertsFacts> = {}): AlertsFacts {
  return {
    alarms: [],
    history: [],
    silences: [],
    sinks: notify.map(({ kind }) => ({
      name: kind,
      waiting: 0,
      deliveredAt: null,
      trouble: null,
    })),
    configs: notify,
    hasWatchdog: false,
    place: {
      kind: "here",
      file: "/h/config/supervisor.local.yaml",
      home: "/h",
    },
    now,
    timeZone: "UTC",
    tomorrow: "tomorrow",
    ...change,
  };
}

test("an alert names its subject once", () => {
  const open = { ...alarm, since: now, silence: null };
  const { alarms } = viewAlerts(
    factsOf({ alarms: [open, { ...open, text: "disk full" }] }),
  );
  expect(
    alarms.map(({ subject, afterSubject }) => subject + afterSubject),
  ).toEqual(["gateway is down", "gateway: disk full"]);
});

test("no secret of a channel is shown", () => {
  const view = viewAlerts(factsOf());
  expect(JSON.stringify(view)).not.toContain("SECRET");
  expect(view.channels.map(({ target }) => target)).toEqual([
    "Webhook at hook.example.org",
    "ntfy topic at ntfy.example.org",
    "Slack webhook at hooks.slack.com",
    "Mail to me@example.org through mail.example.org:587",
  ]);
  expect(view.channels.map(({ notes }) => notes)).toEqual([
    "reminds every 4 h",
    "reminds every 4 h",
    "reminds every 4 h",
    "only what another channel could not deliver",
  ]);
});

test("the state of a channel is its last delivery or failure", () => {
  const sinks = [
    { name: "one", waiting: 0, deliveredAt: now - HOUR_MS, trouble: null },
    { name: "two", waiting: 2, deliveredAt: null, trouble: "answered 500" },
  ];
  const [one, two] = viewAlerts(factsOf({ sinks })).channels;
  expect(one).toMatchObject({ look: "ok", state: "delivered 1 h ago" });
  expect(two).toMatchObject({
    look: "bad",
    state: "failing",
    trouble: "answered 500",
    notes: "2 messages waiting · reminds every 4 h",
  });
});

test("the heading counts open alerts", () => {
  const active = { ...alarm, since: now - HOUR_MS, silence: null };
  expect(alertsHeading({ alarms: [] })).toEqual({
    title: "No open alerts.",
    look: "ok",
  });
  expect(alertsHeading({ alarms: [active] })).toEqual({
    title: "1 open alert.",
    look: "bad",
  });
  const warning = { ...active, level: "warning" } as const;
  expect(alertsHeading({ alarms: [warning, warning] })).toEqual({
    title: "2 open alerts.",
    look: "warn",
  });
});

test("alerts lead to the page of what they are about", () => {
  const about = (kind: string, subject: string) => ({
    ...alarm,
    fingerprint: `${kind}:${subject}`,
    subject,
    since: now,
    silence: null,
  });
  const view = viewAlerts(
    factsOf({
      alarms: [
        about("check", "a b"),
        about("service", "postgres"),
        about("job", "restore-drill"),
        about("notes-quiet", "my notes"),
        about("sink", "mail"),
      ],
    }),
  );
  expect(view.alarms.map(({ href }) => href)).toEqual([
    "/services/a%20b",
    "/services/postgres",
    "/jobs/restore-drill",
    "/notes/my%20notes",
    null,
  ]);
});

test("the history has one row for each incident: when it began and ended, how long it lasted and how often it was raised", () => {
  const record = {
    id: "1",
    alarm,
    raisedAt: now - 2 * HOUR_MS,
    clearedAt: null,
    notified: { mail: now },
  };
  const { history } = viewAlerts(
    factsOf({
      history: [
        record,
        ...Array.from({ length: 40 }, (_, at) => ({
          ...record,
          id: String(at),
          alarm: {
            ...alarm,
            level: at === 7 ? alarm.level : ("warning" as const),
          },
          raisedAt: now - 5 * HOUR_MS - at * 180_000,
          clearedAt: now - 5 * HOUR_MS - at * 180_000 + 60_000,
          notified: {},
        })),
        {
          ...record,
          alarm: { ...alarm, level: "notice" as const },
          raisedAt: now - 9 * HOUR_MS,
          clearedAt: now - 9 * HOUR_MS,
          notified: {},
        },
      ],
    }),
  );
  expect(history).toMatchObject([
    {
      look: "bad",
      period: expect.stringMatching(/^since /),
      facts: ["down", "open for 2 h"],
      notified: "sent through mail",
    },
    {
      look: "none",
      period: expect.stringMatching(/ to /),
      facts: ["down", "lasted 1 h 58 min", "raised 40 times"],
      notified: null,
    },
    { look: "none", facts: ["notice"], notified: null },
  ]);
});

describe.each(CHANNEL_SETUPS)("the setup of $kind", (setup) => {
  test("is a valid configuration that names its secrets", () => {
    const text = setup.yaml
      .replace(/^(\s*)# (\w+: \S+).*$/m, "$1$2")
      .replaceAll(/\$\{\w+\}/g, "https://example.org/x");
    const parsed = configSchema.safeParse(parse(text));
    expect(parsed.error?.issues).toBeUndefined();
    for (const name of setup.secrets) {
      expect(setup.yaml).toContain(`\${${name}}`);
    }
  });

  test.each([
    [
      { kind: "here", file: "/h/config/supervisor.local.yaml", home: "/h" },
      "/h/service.env",
      "hearth up --detach",
    ],
    [
      { kind: "two-hosts", stack: "home", test: "hearth alerts test" },
      "secret of the stack",
      "npx pulumi config set --secret --path hearth:alertSecrets.",
    ],
    [
      {
        kind: "stack-on-kubernetes",
        stack: "grown",
        test: "kubectl exec hearth-supervisor-0 -- hearth alerts test",
      },
      "secret of the stack",
      "npm run deploy -- --stack grown up\nkubectl exec",
    ],
    [
      { kind: "kubernetes", stack: "home", test: "hearth alerts test" },
      "alertSecrets",
      "helm upgrade",
    ],
  ] as const)("is applied as %j takes it", (place, secretsIn, command) => {
    const view = viewSetup(setup, place);
    expect(view.secretsIn).toContain(secretsIn);
    expect(view.commands).toContain(command);
  });
});

test("without a channel, the quickest setup is open", () => {
  const { setups } = viewAlerts(factsOf({ sinks: [], configs: [] }));
  expect(setups.filter(({ isOpen }) => isOpen)).toMatchObject([
    { kind: "ntfy" },
  ]);
});
