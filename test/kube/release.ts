import pg from "pg";
import { expect } from "vitest";
import { RELEASE_NAME } from "../../infra/kubernetes/release-name.ts";
import { ask, say } from "../infra/day-two.ts";
import {
  startProviderProcess,
  type ProviderProcess,
} from "../servers/provider-process.ts";
import { CONTROL_PLANE, createNamespace, get, kubectl } from "./cluster.ts";
import { helm } from "./helm.ts";
import { initStack, type ReleaseStack } from "./release-stack.ts";
import { withClient } from "../servers/with-client.ts";

/** A release of the chart in a namespace of its own, the stack that it belongs to, and a provider for its gateways. */
export interface Release {
  readonly namespace: string;
  readonly stack: ReleaseStack;
  readonly provider: ProviderProcess;
  close(): Promise<void>;
}

export interface Pod {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly deletionTimestamp?: string;
  };
  readonly spec: { readonly nodeName?: string };
  readonly status: {
    readonly podIP?: string;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
    }[];
  };
}

/** Prepares a release: nothing is installed yet. */
export async function openRelease(namespace: string): Promise<Release> {
  await createNamespace(namespace);
  const provider = await startProviderProcess({
    host: CONTROL_PLANE,
    quiet: true,
  });
  const stack = await initStack(namespace, provider.url);
  return {
    namespace,
    stack,
    provider,
    async close() {
      stack.remove();
      await provider.stop();
    },
  };
}

/** `helm test`; returns the output with the logs of the tests. */
export async function helmTest({ namespace }: Release): Promise<string> {
  const { ok, stdout, stderr } = await helm([
    "test",
    RELEASE_NAME,
    "--logs",
    `--namespace=${namespace}`,
  ]);
  if (!ok) {
    throw new Error(`helm test: ${stderr}${stdout}`);
  }
  return stdout;
}

/** The pods of a component, or of all that serve. */
export async function podsOf(
  { namespace }: Release,
  component?: string,
): Promise<readonly Pod[]> {
  const labels = [
    `app.kubernetes.io/instance=${RELEASE_NAME}`,
    component === undefined
      ? "app.kubernetes.io/component notin (test)"
      : `app.kubernetes.io/component=${component}`,
  ];
  const { items } = await get<{ readonly items: readonly Pod[] }>(
    "pods",
    `--namespace=${namespace}`,
    `--selector=${labels.join(",")}`,
  );
  return items;
}

export function isReady({ metadata, status }: Pod): boolean {
  return (
    metadata.deletionTimestamp === undefined &&
    (status.conditions ?? []).some(
      (each) => each.type === "Ready" && each.status === "True",
    )
  );
}

/** Names of the claims of all volumes, each with its volume. */
export async function claimsOf({
  namespace,
}: Release): Promise<readonly string[]> {
  const { items } = await get<{
    readonly items: readonly {
      readonly metadata: { readonly name: string };
      readonly spec: { readonly volumeName: string };
    }[];
  }>("persistentvolumeclaims", `--namespace=${namespace}`);
  return items.map(
    ({ metadata, spec }) => `${metadata.name} ${spec.volumeName}`,
  );
}

/** The URL of a component's Service. */
export async function urlOf(
  { namespace }: Release,
  component: string,
): Promise<string> {
  const { spec } = await get<{
    readonly spec: {
      readonly clusterIP: string;
      readonly ports: readonly { readonly port: number }[];
    };
  }>(`service/${RELEASE_NAME}-${component}`, `--namespace=${namespace}`);
  return `http://${spec.clusterIP}:${spec.ports[0]?.port}`;
}

/** The decoded values of a Secret of the release. */
export async function secretOf(
  { namespace }: Release,
  part = "",
): Promise<Readonly<Record<string, string>>> {
  const { data } = await get<{
    readonly data: Readonly<Record<string, string>>;
  }>(`secret/${RELEASE_NAME}${part}`, `--namespace=${namespace}`);
  return Object.fromEntries(
    Object.entries(data).map(([name, value]) => [
      name,
      Buffer.from(value, "base64").toString(),
    ]),
  );
}

/** One request with the master key to the gateways' Service. */
export async function askGateway(
  release: Release,
  path: string,
  body?: unknown,
): Promise<Readonly<Record<string, unknown>>> {
  const { PROXY_MASTER_KEY = "" } = await secretOf(release);
  return ask(await urlOf(release, "gateway"), path, PROXY_MASTER_KEY, body);
}

export async function createKey(
  release: Release,
  fields: Readonly<Record<string, unknown>> = {},
): Promise<string> {
  return String((await askGateway(release, "/key/generate", fields))["key"]);
}

/** One statement in the release's database. */
export async function sql<T extends pg.QueryResultRow>(
  release: Release,
  statement: string,
  parameters: unknown[] = [],
): Promise<readonly T[]> {
  const { DATABASE_URL = "" } = await secretOf(release, "-database");
  const url = new URL(DATABASE_URL);
  url.hostname = new URL(await urlOf(release, "postgres")).hostname;
  return withClient(
    {
      connectionString: url.href,
      // A first packet that the Service sends to a pod that is gone is repeated to the same address for two minutes.
      connectionTimeoutMillis: 2_000,
    },
    async (client) => {
      return (await client.query<T>(statement, parameters)).rows;
    },
  );
}

export interface Caller {
  readonly url: string;
  readonly key: string;
}

/** A key without limits, for calls through the Service. */
export async function newCaller(release: Release): Promise<Caller> {
  return {
    url: await urlOf(release, "gateway"),
    key: await createKey(release),
  };
}

/**
 * Waits until each call that the provider has finished by now is in the ledger; asserts that none is there twice, and that the sums of all
 * payers are those of their rows.
 */
export async function expectWholeLedger(
  release: Release,
  withinMs = 10_000,
): Promise<void> {
  // Others may continue to call.
  const finished = new Set(release.provider.finished());
  const rows = () =>
    sql<{ readonly request_id: string }>(
      release,
      "SELECT request_id FROM spend_log WHERE payer IS NULL",
    );
  await expect
    .poll(
      async () => {
        const ids = new Set((await rows()).map((row) => row.request_id));
        return [...finished].filter((id) => !ids.has(id)).length;
      },
      { timeout: withinMs, interval: 500, message: "calls not in the ledger" },
    )
    .toBe(0);
  const ids = (await rows()).map((row) => row.request_id);
  expect(ids.length).toBe(new Set(ids).size);
  expect(await sql(release, "SELECT * FROM spend_check")).toEqual([]);
  say(`${finished.size} calls at the provider, ${ids.length} in the ledger`);
}

/** Prints what helps to understand a failure. */
export async function show({ namespace }: Release): Promise<void> {
  for (const args of [
    ["get", "pods,persistentvolumeclaims", "--output=wide"],
    ["get", "events", "--sort-by=.lastTimestamp"],
    [
      "logs",
      "--selector=app.kubernetes.io/instance=hearth",
      "--all-containers",
      "--prefix",
      "--tail=15",
      "--ignore-errors",
    ],
  ]) {
    const output = await kubectl([...args, `--namespace=${namespace}`]).catch(
      String,
    );
    process.stdout.write(`${output.slice(-12_000)}\n`);
  }
}
