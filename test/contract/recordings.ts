import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";

/** A recorded body; its members depend on its kind and length (fixtures/README.md). */
export interface RecordedBody {
  readonly length: number;
  readonly json?: unknown;
  readonly text?: string;
  readonly raw?: string;
  readonly lines?: readonly unknown[];
}

export interface RecordedAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: RecordedBody;
  readonly end?: string;
}

export interface Probe {
  readonly name: string;
  readonly group: string;
  readonly as: string;
  readonly request: {
    readonly method: string;
    readonly path: string;
    readonly rawQuery?: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly body?: RecordedBody;
  };
  readonly response: RecordedAnswer;
}

/** One request of a recorded client. */
export interface RecordedRequest {
  readonly type: "request";
  readonly n: number;
  readonly t: number;
  readonly dur: number;
  readonly end: "complete" | "client-closed" | "server-away";
  readonly req: {
    readonly method: string;
    readonly path: string;
    readonly query: Readonly<Record<string, string>>;
    readonly headers: Readonly<Record<string, string>>;
    readonly auth?: { readonly user: string; readonly password: string };
    readonly body?: RecordedBody;
  };
  readonly res?: RecordedAnswer;
}

/** A recorded action in addition to the client's requests. */
export interface RecordedStep {
  readonly type: "step";
  readonly t: number;
  readonly event?: string;
}

export interface Scenario {
  readonly name: string;
  readonly title: string;
  readonly db: string;
  readonly lines: readonly (RecordedRequest | RecordedStep)[];
}

function readLines(file: string): unknown[] {
  const text = readFileSync(
    new URL(`fixtures/${file}`, import.meta.url),
    "utf8",
  );
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as unknown);
}

export function readProbes(): Probe[] {
  return readLines("couchdb-probes.jsonl").slice(1) as Probe[];
}

export function readScenario(name: string): Scenario {
  const [head, ...lines] = readLines(`${name}.jsonl`) as [
    Scenario,
    ...Scenario["lines"],
  ];
  return { name, title: head.title, db: head.db, lines };
}

/** The bytes of a recorded request body, with shortened strings padded to their length. */
export function bodyBytes(
  body: RecordedBody | undefined,
  probeName: string | undefined,
  substitute: (text: string) => string,
): Buffer | undefined {
  if (body === undefined || body.length === 0) {
    return undefined;
  }
  switch (probeName) {
    case "invalid utf8":
      return Buffer.concat([
        Buffer.from('{"u":"'),
        Buffer.from([0xff, 0xfe]),
        Buffer.from('"}'),
      ]);
    case "gzip body":
      return gzipSync('{"a":1}');
    default:
      return Buffer.from(
        substitute(body.raw ?? body.text ?? JSON.stringify(filled(body.json))),
      );
  }
}

interface Truncated {
  readonly $truncated: { readonly length: number; readonly head: string };
}

export function isTruncated(value: unknown): value is Truncated {
  return typeof value === "object" && value !== null && "$truncated" in value;
}

function filled(value: unknown): unknown {
  if (isTruncated(value)) {
    const { length, head } = value.$truncated;
    return head.slice(0, length).padEnd(length, "x");
  }
  if (Array.isArray(value)) {
    return value.map(filled);
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, filled(each)]),
  );
}
