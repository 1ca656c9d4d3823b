import { expect, test } from "vitest";
import type { Execution } from "../../core/execute.ts";
import { DockerError } from "../engine.ts";
import { findDisagreements, silentHost, type Observed } from "./findings.ts";
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

const network = (host: string) => ({
  ...container(host, `network-${host}`, `n${host}`),
  type: "docker:index/network:Network",
});
const empty: Observed["state"] = { resources: [], pending_operations: [] };
const at = (address: string) => ({
  endpoint: `ssh://root@${address}`,
  sshOpts: [],
  prefix: "hearth",
  stack: "hearth/home",
});

const well: Observed = {
  engines: { a: at("10.8.0.1"), b: at("10.8.0.2") },
  postgresOn: "a",
  state: {
    resources: [
      network("a"),
      network("b"),
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
const onB = (view: Partial<HostView>): Observed => ({
  ...well,
  hosts: { ...well.hosts, b: { containers: [], volumes: [], ...view } },
});

test("nothing is reported where state and hosts agree", () => {
  expect(findDisagreements(well)).toEqual([]);
});

test.each<[string, Observed, string, string]>([
  [
    "a removed container",
    onB({}),
    "host B: hearth-gateway is in the state but not on the host",
    "npm run deploy -- up --refresh",
  ],
  [
    "a stopped one",
    onB({
      containers: [running("g1", "gateway", "Exited (137) 2 minutes ago")],
    }),
    "host B: hearth-gateway is not running (Exited (137) 2 minutes ago)",
    "npm run deploy -- up --refresh",
  ],
  [
    "an unhealthy one",
    onB({ containers: [running("g1", "gateway", "Up 1 h (unhealthy)")] }),
    "host B: hearth-gateway is unhealthy",
    "`ssh root@10.8.0.2 docker logs --tail 50 hearth-gateway` shows why; `ssh root@10.8.0.2 docker restart hearth-gateway` restarts it",
  ],
  [
    "one that does not stay",
    onB({
      containers: [running("g1", "gateway", "Restarting (1) 5 seconds ago")],
    }),
    "host B: hearth-gateway keeps restarting (Restarting (1) 5 seconds ago)",
    "`ssh root@10.8.0.2 docker logs --tail 50 hearth-gateway` shows why; fix that and run npm run deploy -- up, or roll back",
  ],
  [
    "one that is not in the state, as after an interrupted run",
    onB({ containers: [running("g1", "gateway"), running("e9", "edge")] }),
    "host B: hearth-edge is on the host but not in the state",
    "npm run deploy -- up",
  ],
  [
    "one on a host whose networks are not in the state",
    {
      ...well,
      state: {
        ...well.state,
        resources: well.state.resources.filter(
          ({ id }) => id !== "nb" && id !== "g1",
        ),
      },
    },
    "host B: hearth-gateway is on the host but not in the state",
    "npm run deploy -- adopt",
  ],
  [
    "a running stack that is not in the state",
    { ...well, state: empty },
    "the state is empty, but Hearth is running on the hosts (host A: hearth-postgres; host B: hearth-gateway)",
    "set PULUMI_BACKEND_URL as for the `up`; or, if the state is lost: npm run deploy -- adopt",
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
    "host A: the volume hearth-postgres and its data no longer exist",
    "npm run deploy -- up --refresh creates an empty one; then restore a backup",
  ],
  [
    "a role that was dropped",
    { ...well, roles: [] },
    "the role gateway_a is in the state but not in Postgres",
    "npm run deploy -- up --refresh",
  ],
  [
    "a role from elsewhere",
    { ...well, roles: ["gateway_a", "gateway_b"] },
    "the role gateway_b is in Postgres but not in the state",
    "npm run deploy -- adopt",
  ],
  [
    "a Postgres that does not respond",
    { ...well, roles: null },
    "the roles of Postgres cannot be read",
    "if hearth-postgres is not running: npm run deploy -- up --refresh; otherwise `ssh root@10.8.0.1 docker logs --tail 50 hearth-postgres` shows why",
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
    'an interrupted run left edge with its operation "creating" unfinished',
    "npm run deploy -- up",
  ],
])(
  "%s is reported with the command that fixes it",
  (_case, seen, what, fix) => {
    expect(findDisagreements(seen)).toEqual([{ what, fix }]);
  },
);

test.each<[string, string, number, string, string]>([
  [
    "a host that is off",
    "ssh://root@10.8.0.2",
    255,
    "ssh: connect to host 10.8.0.2 port 22: No route to host",
    "start the host and its ssh server, or correct its address: ",
  ],
  [
    "a login without the key",
    "ssh://root@10.8.0.2",
    255,
    "root@10.8.0.2: Permission denied (publickey)",
    "ssh-copy-id root@10.8.0.2 && ssh root@10.8.0.2 true (a key with a passphrase: ssh-add); ",
  ],
  [
    "an engine that is stopped",
    "ssh://root@10.8.0.2",
    1,
    "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
    "ssh root@10.8.0.2 systemctl enable --now docker; ",
  ],
  [
    "a user who may not use Docker",
    "ssh://anna@10.8.0.2",
    1,
    "permission denied while trying to connect to the docker API at unix:///var/run/docker.sock",
    "ssh -t anna@10.8.0.2 sudo usermod -aG docker anna ",
  ],
  [
    "a name that is unknown",
    "tcp://nas:2375",
    1,
    'error during connect: Get "http://nas:2375/v1.50/containers/json": dial tcp: lookup nas: no such host',
    "npx pulumi config set --path hearth:hosts.b.docker ",
  ],
])(
  "%s is reported with the fix for its reason",
  (_case, endpoint, exitCode, reason, fix) => {
    const engine = { ...well.engines.b, endpoint };
    const execution = { exitCode, reason, stderr: reason } as Execution;
    const failure = new DockerError(engine, execution);
    const found = silentHost("b", engine, failure, false);
    expect(found.what).toMatch(/^host B: .+ does not (respond|work) \(/);
    expect(found.what).toContain(`(${reason})`);
    expect(found.fix.slice(0, fix.length)).toBe(fix);
    expect(found.fix).toMatch(
      /; or continue without this host: npm run deploy -- up --without b$/,
    );
    const during = silentHost("b", engine, failure, true);
    expect(found.fix).toContain(during.fix);
    expect(during.fix).not.toContain("--without");
  },
);

test("a role of the operator's own is not reported", () => {
  expect(
    findDisagreements({ ...well, roles: ["gateway_a", "grafana"] }),
  ).toEqual([]);
});

test("a Postgres that was never deployed is not reported", () => {
  expect(
    findDisagreements({
      ...well,
      state: empty,
      hosts: {
        a: { containers: [], volumes: [] },
        b: { containers: [], volumes: [] },
      },
      roles: null,
    }),
  ).toEqual([]);
});
