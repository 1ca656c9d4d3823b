import { expect, test } from "vitest";
import { VARIANTS } from "./chart-variants.ts";
import { render, type Rendered } from "./helm.ts";
import { environmentOf, find, podIn } from "./rendered-objects.ts";

test("network policies allow the required traffic only", async () => {
  const objects = await render(VARIANTS["everything given"]);
  expect(policyOf(objects, "gateway")).toEqual({
    // Ingress controller, Prometheus, then the stack's own.
    from: ["given 4000", "given 4000", "supervisor 4000", "test 4000"],
    // Names, stores, providers: the runner and the api_base of a model.
    to: [
      "any 53",
      "postgres 5432",
      "redis 6379",
      "any 443",
      "any 11434",
      "any 8000",
    ],
  });
  expect(policyOf(objects, "postgres")).toEqual({
    from: ["gateway 5432", "migration 5432", "supervisor 5432"],
    to: [],
  });
  expect(policyOf(objects, "redis")).toEqual({
    from: ["gateway 6379", "supervisor 6379"],
    to: [],
  });
  expect(policyOf(objects, "notes")).toEqual({
    from: ["given 5984", "supervisor 5984"],
    to: [],
  });
  expect(policyOf(objects, "migration")).toEqual({
    from: [],
    to: ["any 53", "postgres 5432"],
  });
  expect(policyOf(objects, "supervisor")).toEqual({
    from: ["given 4080", "given 4080"],
    to: [
      "any 53",
      "gateway 4000",
      "notes 5984",
      "postgres 5432",
      "redis 6379",
      ...[443, 6443, 25, 465, 587].map((port) => `any ${port}`),
    ],
  });
});

test("network policies follow the stores to other places", async () => {
  const cluster = await render(VARIANTS["a Cluster and sentinels"]);
  expect(policyOf(cluster, "gateway").to).toEqual([
    "any 53",
    "trial-hearth-postgres 5432",
    "any 6379",
    "any 26379",
    "any 443",
  ]);
  const existing = await render(VARIANTS["existing Secrets only"]);
  expect(policyOf(existing, "supervisor").to).toContain("any 5984");
  const external = await render({
    postgres: {
      mode: "external",
      external: {
        databaseUrl: "postgresql://gateway_a:p%3A1@pooler:6432/hearth?a=b",
        databaseDirectUrl: "postgresql://gateway_a:p@primary/hearth",
      },
    },
    redis: { mode: "external", external: { url: "rediss://:p@cache:6380/0" } },
  });
  expect(policyOf(external, "gateway").to).toEqual([
    "any 53",
    "any 5432",
    "any 6432",
    "any 6379",
    "any 6380",
    "any 443",
  ]);
});

test("host names lead to the gateway, the notes and the supervisor", async () => {
  const objects = await render(VARIANTS["everything given"]);
  const expected = [
    ["hearth.example.org", "trial-hearth-gateway"],
    ["notes.example.org", "trial-hearth-notes"],
    ["console.example.org", "trial-hearth-supervisor"],
  ];
  const { spec } = find(objects, "Ingress", "trial-hearth");
  const { rules, tls } = spec as {
    readonly rules: readonly {
      readonly host: string;
      readonly http: {
        readonly paths: readonly {
          readonly backend: { readonly service: { readonly name: string } };
        }[];
      };
    }[];
    readonly tls: unknown;
  };
  expect(
    rules.map(({ host, http }) => [host, http.paths[0]?.backend.service.name]),
  ).toEqual(expected);
  expect(tls).toEqual([
    { secretName: "hearth-tls", hosts: expected.map(([host]) => host) },
  ]);
  const routes = objects.filter(({ kind }) => kind === "HTTPRoute");
  expect(
    routes
      .map((route) => {
        const { hostnames, rules: routing } = route.spec as {
          readonly hostnames: readonly string[];
          readonly rules: readonly {
            readonly backendRefs: readonly { readonly name: string }[];
          }[];
        };
        return [hostnames[0], routing[0]?.backendRefs[0]?.name];
      })
      .toSorted(),
  ).toEqual(expected.toSorted());
  expect(environmentOf(podIn(objects, "supervisor"))).toMatchObject({
    GATEWAY_PUBLIC_URL: "https://hearth.example.org",
    NOTES_PUBLIC_URL: "https://notes.example.org",
    SUPERVISOR_PUBLIC_URL: "https://console.example.org",
    HEARTH_PROXY_HOPS: "1",
  });
  expect(environmentOf(podIn(objects, "gateway"))).toMatchObject({
    HEARTH_CONSOLE_URL: "https://console.example.org",
  });
});

interface Rule {
  readonly ports?: readonly { readonly port: number }[];
  readonly from?: readonly unknown[];
  readonly to?: readonly unknown[];
}

/** Who reaches a component's ports, or what it reaches: "COMPONENT PORT", "any PORT". */
function reaches(rules: readonly Rule[]): readonly string[] {
  return rules.flatMap(({ ports = [], from, to }) =>
    (from ?? to ?? ["any"]).flatMap((peer) => {
      const labels = (
        peer as { podSelector?: { matchLabels: Record<string, string> } }
      ).podSelector?.matchLabels;
      const name =
        peer === "any"
          ? "any"
          : (labels?.["app.kubernetes.io/component"] ??
            labels?.["cnpg.io/cluster"] ??
            "given");
      return [...new Set(ports.map(({ port }) => port))].map(
        (port) => `${name} ${port}`,
      );
    }),
  );
}

function policyOf(objects: readonly Rendered[], component: string) {
  const { spec } = find(objects, "NetworkPolicy", `trial-hearth-${component}`);
  const {
    ingress = [],
    egress = [],
    policyTypes,
  } = spec as {
    readonly ingress?: readonly Rule[];
    readonly egress?: readonly Rule[];
    readonly policyTypes: readonly string[];
  };
  expect(policyTypes).toEqual(["Ingress", "Egress"]);
  return { from: reaches(ingress), to: reaches(egress) };
}
