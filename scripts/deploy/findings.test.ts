import { expect, test } from "vitest";
import { findDisagreements, type Seen } from "./findings.ts";
import type { HostView } from "./host-view.ts";

const container = (host: string, name: string, id: string) => ({
  urn: `urn:pulumi:home::hearth::docker:index/container:Container::${name}`,
  type: "docker:index/container:Container",
  id,
  provider: `urn:pulumi:home::hearth::pulumi:providers:docker::host-${host}::x`,
  inputs: { name: `hearth-${name}` },
});
const volume = {
  urn: "urn:pulumi:home::hearth::docker:index/volume:Volume::postgres-data",
  type: "docker:index/volume:Volume",
  id: "hearth-postgres",
  provider: "urn:pulumi:home::hearth::pulumi:providers:docker::host-a::x",
  inputs: { name: "hearth-postgres" },
};
const role = (name: string) => ({
  urn: `urn:pulumi:home::hearth::postgresql:index/role:Role::postgres-${name}`,
  type: "postgresql:index/role:Role",
  id: name,
});
const running = (
  id: string,
  name: string,
  status = "Up 5 minutes (healthy)",
) => ({ id, name: `hearth-${name}`, status });

const well: Seen = {
  state: {
    resources: [
      container("a", "postgres", "p1"),
      container("b", "gateway", "g1"),
      volume,
      role("gateway_a"),
    ],
    pending_operations: [],
  },
  hosts: {
    a: {
      containers: [running("p1", "postgres")],
      volumes: ["hearth-postgres"],
    },
    b: { containers: [running("g1", "gateway")], volumes: [] },
  },
  roles: ["gateway_a"],
};
const onB = (view: Partial<HostView>): Seen => ({
  ...well,
  hosts: { ...well.hosts, b: { containers: [], volumes: [], ...view } },
});

test("nothing is said where state and hosts agree", () => {
  expect(findDisagreements(well)).toEqual([]);
});

test.each<[string, Seen, string, string]>([
  [
    "a removed container",
    onB({}),
    "host B: hearth-gateway is in the state and not on the host",
    "npm run deploy -- up --refresh",
  ],
  [
    "a stopped one",
    onB({
      containers: [running("g1", "gateway", "Exited (137) 2 minutes ago")],
    }),
    "host B: hearth-gateway does not run (Exited (137) 2 minutes ago)",
    "npm run deploy -- up --refresh",
  ],
  [
    "an unhealthy one",
    onB({ containers: [running("g1", "gateway", "Up 1 h (unhealthy)")] }),
    "host B: hearth-gateway is unhealthy",
    "`docker logs --tail 50 hearth-gateway` there says why; `docker restart hearth-gateway` there starts it anew",
  ],
  [
    "one that does not stay",
    onB({
      containers: [running("g1", "gateway", "Restarting (1) 5 seconds ago")],
    }),
    "host B: hearth-gateway ends again and again (Restarting (1) 5 seconds ago)",
    "`docker logs --tail 50 hearth-gateway` there says why; mend that and run npm run deploy -- up, or roll back",
  ],
  [
    "one that the state does not know",
    onB({ containers: [running("g1", "gateway"), running("e9", "edge")] }),
    "host B: hearth-edge is on the host and not in the state",
    "npm run deploy -- adopt",
  ],
  [
    "a host that is away",
    { ...well, hosts: { ...well.hosts, b: null } },
    "host B: Docker does not answer",
    "switch it on, or work on the other host meanwhile: npm run deploy -- up --without b",
  ],
  [
    "lost data",
    {
      ...well,
      hosts: {
        ...well.hosts,
        a: { containers: [running("p1", "postgres")], volumes: [] },
      },
    },
    "host A: the volume hearth-postgres is gone, and with it its data",
    "npm run deploy -- up --refresh makes an empty one; then put the data back from a backup",
  ],
  [
    "a role that was dropped",
    { ...well, roles: [] },
    "Postgres does not know the role gateway_a, which is in the state",
    "npm run deploy -- up --refresh",
  ],
  [
    "a role from elsewhere",
    { ...well, roles: ["gateway_a", "gateway_b"] },
    "Postgres knows the role gateway_b, which is not in the state",
    "npm run deploy -- adopt",
  ],
  [
    "a Postgres that does not answer",
    { ...well, roles: null },
    "Postgres cannot be asked for its roles",
    "when hearth-postgres does not run: npm run deploy -- up --refresh; else `docker logs --tail 50 hearth-postgres` on its host says why",
  ],
  [
    "an interrupted run",
    {
      ...well,
      state: {
        ...well.state,
        pending_operations: [
          { type: "creating", resource: container("b", "edge", "") },
        ],
      },
    },
    'an interrupted run left edge in the midst of "creating"',
    "npm run deploy -- up",
  ],
])("%s is named with the command that mends it", (_case, seen, what, mend) => {
  expect(findDisagreements(seen)).toEqual([{ what, mend }]);
});

test("a role of the operator's own is nobody's business", () => {
  expect(
    findDisagreements({ ...well, roles: ["gateway_a", "grafana"] }),
  ).toEqual([]);
});

test("of a Postgres that was never deployed nothing is said", () => {
  expect(
    findDisagreements({
      state: { resources: [], pending_operations: [] },
      hosts: {
        a: { containers: [], volumes: [] },
        b: { containers: [], volumes: [] },
      },
      roles: null,
    }),
  ).toEqual([]);
});
