import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import { createServer as createTcpServer } from "node:net";
import { SMTPServer } from "smtp-server";
import { afterEach, beforeEach, expect, test } from "vitest";
import { HOUR_MS } from "../../../core/duration.ts";
import { notifySchema } from "../config.ts";
import type { AlertMessage } from "../message.ts";
import { makeSinks } from "./make-sinks.ts";
import type { Sink } from "./sink.ts";
import { listen } from "../../../test/servers/ports.ts";
import { makeSelfSigned } from "../../../test/supervisor/self-signed.ts";

interface Received {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

let receiver: Server;
let address: string;
let received: Received[];
let answer: number;
const closing: (() => Promise<void>)[] = [];

beforeEach(async () => {
  received = [];
  answer = 200;
  receiver = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method, url, headers } = request;
      const body: unknown = JSON.parse(Buffer.concat(chunks).toString("utf8"));
      received.push({ method, url, headers, body });
      // Web frameworks echo the path, which contains the secret.
      response.writeHead(answer).end(`Cannot ${method} ${url}`);
    });
  });
  address = `http://127.0.0.1:${await listen(receiver)}`;
  closing.push(() => new Promise((resolve) => receiver.close(() => resolve())));
});
afterEach(async () => {
  for (const close of closing.splice(0)) {
    await close();
  }
});

const at = Date.UTC(2026, 10, 21, 10, 4);
const message: AlertMessage = {
  id: "0d1f0a3e-0000-4000-8000-000000000000",
  at,
  host: "home-a",
  consoleUrl: "https://console.example.org",
  events: [
    {
      event: "raised",
      alarm: {
        fingerprint: "check:gateway",
        level: "down",
        subject: "gateway",
        text: "answered 500, expected 200",
        output: "<b>boom & bust</b>",
        tried: ["restarted at 10:02"],
        command: "hearth logs gateway",
      },
      since: at - 120_000,
      until: null,
    },
    {
      event: "resolved",
      alarm: {
        fingerprint: "job:drill",
        level: "warning",
        subject: "drill",
        text: "failed — ☃",
        command: "hearth jobs list",
      },
      since: at - HOUR_MS,
      until: at - 60_000,
    },
  ],
};

/** One sink from an entry of `notify:`. */
function sinkOf(entry: Readonly<Record<string, unknown>>): Sink {
  const [sink] = makeSinks(notifySchema.parse([entry]));
  if (sink === undefined) {
    throw new Error("no sink");
  }
  return sink;
}

const patient = () => AbortSignal.timeout(20_000);

test("a webhook receives the documented JSON, and the token as a bearer token", async () => {
  await sinkOf({
    kind: "webhook",
    url: `${address}/alerts`,
    token: "s3cret-token",
  }).send(message, patient());
  expect(received).toHaveLength(1);
  expect(received[0]).toMatchObject({ method: "POST", url: "/alerts" });
  expect(received[0]?.headers).toMatchObject({
    "content-type": "application/json",
    authorization: "Bearer s3cret-token",
  });
  expect(received[0]?.body).toMatchObject({
    version: 1,
    id: message.id,
    at: "2026-11-21T10:04:00.000Z",
    host: "home-a",
    console: "https://console.example.org",
    state: "down",
    title: "✕ gateway is down; drill recovered (home-a)",
    alarms: [
      {
        event: "raised",
        fingerprint: "check:gateway",
        level: "down",
        subject: "gateway",
        text: "answered 500, expected 200",
        output: "<b>boom & bust</b>",
        tried: ["restarted at 10:02"],
        command: "hearth logs gateway",
        since: "2026-11-21T10:02:00.000Z",
        until: null,
      },
      {
        event: "resolved",
        output: null,
        tried: [],
        until: "2026-11-21T10:03:00.000Z",
      },
    ],
  });
  const { text } = received[0]?.body as { readonly text: string };
  expect(text).toContain("✕ gateway: answered 500, expected 200\nsince ");
  expect(text).toContain("last output: <b>boom & bust</b>\n");
  expect(text).toContain("tried: restarted at 10:02\n");
  expect(text).toContain("next step: hearth logs gateway");
  expect(text).toContain("● resolved: drill: failed — ☃\nduration 59 min");
});

test("ntfy gets its publish-as-JSON body at the server's root", async () => {
  await sinkOf({
    kind: "ntfy",
    url: `${address}/my-home`,
    token: "tk_s3cret",
  }).send(message, patient());
  expect(received[0]).toMatchObject({
    method: "POST",
    url: "/",
    headers: { authorization: "Bearer tk_s3cret" },
    body: {
      topic: "my-home",
      title: "✕ gateway is down; drill recovered (home-a)",
      priority: 5,
      tags: ["rotating_light"],
      click: "https://console.example.org",
    },
  });
});

test("slack gets text and attachments, with its control characters escaped", async () => {
  await sinkOf({ kind: "slack", url: `${address}/services/T0/s3cret` }).send(
    message,
    patient(),
  );
  const body = received[0]?.body as {
    readonly text: string;
    readonly attachments: readonly {
      readonly color: string;
      readonly text: string;
      readonly ts: number;
    }[];
  };
  expect(received[0]?.url).toBe("/services/T0/s3cret");
  expect(body.text).toBe("✕ gateway is down; drill recovered (home-a)");
  expect(body.attachments).toMatchObject([
    {
      color: "#bb1f1f",
      title: "✕ gateway: answered 500, expected 200",
      title_link: "https://console.example.org",
    },
    { color: "#1a7f43", title: "● resolved: drill: failed — ☃" },
  ]);
  expect(body.attachments[0]?.text).toContain(
    "&lt;b&gt;boom &amp; bust&lt;/b&gt;",
  );
  expect(body.attachments[0]?.ts).toBe((at - 120_000) / 1000);
});

test.each(["webhook", "slack", "ntfy"])(
  "an error or missing answer of %s is reported without its address",
  async (kind) => {
    const path = kind === "ntfy" ? "/s3cret" : "/services/s3cret";
    const sink = sinkOf({ kind, url: `${address}${path}` });
    answer = 404;
    await expect(sink.send(message, patient())).rejects.toThrow(
      /^answered 404$/,
    );
    await closing.splice(0)[0]?.();
    const refusal = await sink.send(message, patient()).catch(String);
    // Reset if the connection of the previous answer was still open.
    expect(refusal).toMatch(/ECONNREFUSED|ECONNRESET/);
    expect(refusal).not.toContain("s3cret");
  },
);

interface Mail {
  readonly from: string;
  readonly to: readonly string[];
  readonly user: string | undefined;
  readonly secure: boolean;
  readonly text: string;
}

async function mailServer(
  options: ConstructorParameters<typeof SMTPServer>[0] = {},
): Promise<{ readonly port: number; readonly mails: Mail[] }> {
  const mails: Mail[] = [];
  const server = new SMTPServer({
    authOptional: true,
    allowInsecureAuth: true,
    logger: false,
    onAuth: ({ username, password }, _session, done) =>
      password === "s3cret-password"
        ? done(null, { user: username })
        : done(new Error(`not ${password}`)),
    onData: (stream, session, done) => {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        const { mailFrom, rcptTo } = session.envelope;
        mails.push({
          from: mailFrom === false ? "" : mailFrom.address,
          to: rcptTo.map((each) => each.address),
          user: session.user,
          secure: session.secure,
          text: Buffer.concat(chunks).toString("utf8"),
        });
        done();
      });
    },
    ...options,
  });
  server.on("error", () => {});
  const port = await listen(server.server);
  closing.push(() => new Promise((resolve) => server.close(() => resolve())));
  return { port, mails };
}

function mailSink(
  port: number,
  change: Readonly<Record<string, unknown>> = {},
) {
  return sinkOf({
    kind: "smtp",
    host: "127.0.0.1",
    port,
    security: "none",
    from: "Hearth <hearth@example.org>",
    to: ["one@example.org", "two@example.org"],
    ...change,
  });
}

test("mail is sent to all recipients with a readable subject and text", async () => {
  const { port, mails } = await mailServer();
  await mailSink(port, { user: "hearth", password: "s3cret-password" }).send(
    message,
    patient(),
  );
  expect(mails).toHaveLength(1);
  const [mail] = mails;
  expect(mail).toMatchObject({
    from: "hearth@example.org",
    to: ["one@example.org", "two@example.org"],
    user: "hearth",
  });
  const [head = "", ...body] = (mail?.text ?? "").split("\r\n\r\n");
  expect(head).toContain("Auto-Submitted: auto-generated");
  expect(head).toContain("Date: Sat, 21 Nov 2026 10:04:00 +0000");
  expect(head).toMatch(/Content-Type: text\/plain; charset=utf-8/);
  const subject = head
    .replaceAll("\r\n ", "")
    .match(/^Subject: (.*)$/m)?.[1]
    ?.replace(/=\?UTF-8\?Q\?(.*?)\?=/gi, (_, word: string) => quoted(word));
  expect(subject?.replaceAll("_", " ")).toContain("gateway is down");
  const text = quoted(body.join("\r\n\r\n").replaceAll("=\r\n", ""));
  expect(text).toContain("next step: hearth logs gateway");
  expect(text).toContain("Hearth on home-a\r\nhttps://console.example.org\r\n");
});

test("a message for an owner is mailed to the owner only", async () => {
  const { port, mails } = await mailServer();
  await mailSink(port, {}).send(
    { ...message, owner: "ann@example.org" },
    patient(),
  );
  expect(mails).toMatchObject([{ to: ["ann@example.org"] }]);
  expect(mails[0]?.text).not.toContain("hearth ");
});

function quoted(text: string): string {
  return text.replace(/=([0-9A-F]{2})/g, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

test("a password is never sent unencrypted if starttls is required", async () => {
  const { port, mails } = await mailServer({
    disabledCommands: ["STARTTLS"],
  });
  const sink = mailSink(port, {
    security: "starttls",
    user: "hearth",
    password: "s3cret-password",
  });
  await expect(sink.send(message, patient())).rejects.toThrow(
    "the connection could not be encrypted",
  );
  expect(mails).toEqual([]);
});

test("the error of a mail server is reported without the credentials", async () => {
  const { port } = await mailServer();
  const sink = mailSink(port, { user: "hearth", password: "s3cret-wrong" });
  const refusal = await sink.send(message, patient()).catch(String);
  expect(refusal).toBe(
    "Error: the mail server rejected user or password (535)",
  );
  const { port: picky } = await mailServer({
    onRcptTo: (_address, _session, done) => done(new Error("no such user")),
  });
  expect(await mailSink(picky).send(message, patient()).catch(String)).toBe(
    "Error: the mail server rejected sender or recipient (550)",
  );
});

test("a failed connection to a mail server is reported with its cause", async () => {
  const failure = (port: number, change = {}) =>
    mailSink(port, change).send(message, patient()).catch(String);
  const { cert, key } = makeSelfSigned(new Date(Date.now() + HOUR_MS));
  const { port: plain } = await mailServer({ cert, key });
  expect(await failure(plain, { security: "starttls" })).toMatch(
    /^Error: the connection to the mail server failed \(self-signed certificate/,
  );
  expect(await failure(plain, { security: "tls" })).toMatch(
    /^Error: TLS with the mail server failed \(.+\): check `port` and `security` \(/,
  );
  const { port: encrypted } = await mailServer({ secure: true, cert, key });
  expect(await failure(encrypted)).toMatch(
    /^Error: the mail server did not answer in time \(.+\): check `port` and `security` \(/,
  );
  const unwilling = createTcpServer((socket) =>
    socket.on("error", () => {}).end("554 rejected, s3cret\r\n"),
  );
  const port = await listen(unwilling);
  expect(await failure(port)).toBe(
    "Error: the connection to the mail server failed (554)",
  );
  await new Promise((resolve) => unwilling.close(resolve));
  expect(await failure(port)).toMatch(/\(.*ECONNREFUSED.*\)$/);
});

test("several sinks of one kind have different names", () => {
  const url = "http://127.0.0.1:1/x";
  const sinks = makeSinks(
    notifySchema.parse([
      { kind: "webhook", url },
      { kind: "webhook", url, name: "webhook-2" },
      { kind: "webhook", url },
    ]),
  );
  expect(sinks.map(({ name }) => name)).toEqual([
    "webhook",
    "webhook-2",
    "webhook-3",
  ]);
});
