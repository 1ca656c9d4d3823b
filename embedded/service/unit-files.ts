import { join } from "node:path";
import { SMALL_MEMORY } from "../../supervisor/node-options.ts";

/** How a service manager starts Hearth at boot. All paths are absolute. */
export interface ServicePlan {
  readonly node: string;
  /** Of this checkout. */
  readonly project: string;
  /** HEARTH_HOME. */
  readonly home: string;
  /** Plain settings; secrets are never among them. */
  readonly settings: Readonly<Record<string, string>>;
  /** The user of a service that root installs for the whole machine; undefined for a user's own service. */
  readonly user: string | undefined;
}

export const UNIT_NAME = "hearth.service";
export const LAUNCHD_LABEL = "org.hearth.supervisor";

/** Lets the gateway finish its calls first, as with `hearth down`. */
const STOP_WITHIN_SECONDS = 200;

/** Variables for `hearth up` that contain no secret. */
const PLAIN_SETTINGS = [
  "HEARTH_GATEWAY_PORT",
  "HEARTH_NOTES_PORT",
  "HEARTH_SUPERVISOR_PORT",
  "HEARTH_POSTGRES_PORT",
  "HEARTH_SUPERVISOR_CONFIG",
  "HEARTH_GATEWAY_CONFIG",
  "HEARTH_PEER_URL",
  "HEARTH_ECHO",
  "HEARTH_JOBS",
  "REDIS_HOST",
  "REDIS_PORT",
  "REDIS_URL",
  "REDIS_SENTINELS",
  "REDIS_MASTER_NAME",
  "REDIS_USERNAME",
  "REDIS_SENTINEL_USERNAME",
  "REDIS_DB",
  "REDIS_TLS",
  "REDIS_CA_FILE",
  "LOCAL_RUNNER_A_URL",
  "LOCAL_RUNNER_B_URL",
];

/** The plain settings of an environment, and every NAME_FILE that names the file of a key, password or address. */
export function plainSettingsOf(
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => {
      if (value === undefined || value === "") {
        return [];
      }
      const isPlain =
        PLAIN_SETTINGS.includes(name) ||
        /_(KEY|PASSWORD|TOKEN|SECRET|URL)_FILE$/.test(name);
      // An address may contain a password.
      return isPlain && !/:\/\/[^/]*@/.test(value) ? [[name, value]] : [];
    }),
  );
}

function environmentOf({ home, settings }: ServicePlan) {
  return {
    ...settings,
    HEARTH_RUNTIME: "process",
    HEARTH_HOME: home,
    NODE_COMPILE_CACHE: join(home, "cache"),
  };
}

/**
 * The program and its options. Node itself reads `service.env`, which contains secrets next to the data: root would follow a link
 * in its place that the service's user created.
 */
function commandOf({ node, project, home }: ServicePlan): readonly string[] {
  return [
    node,
    ...SMALL_MEMORY,
    `--env-file-if-exists=${home}/service.env`,
    `${project}/supervisor/main.ts`,
  ];
}

/**
 * Restrictions that both of systemd's managers can enforce. Node compiles code at run time, so memory stays executable; a core dump
 * of it would contain all keys.
 */
const RESTRICTIONS = `NoNewPrivileges=yes
LimitCORE=0
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged
SystemCallErrorNumber=EPERM
KeyringMode=private
UMask=0077`;

/**
 * Restrictions that only the system's manager can enforce: a user's manager may not drop capabilities, and the unit would fail
 * to start. /proc stays visible for the checks of memory and disks, IPC for Postgres, which continues to serve while a crashed
 * supervisor is restarted.
 */
function isolation(home: string): string {
  return `CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome=read-only
ReadWritePaths=${quoted(home)}
PrivateTmp=yes
PrivateDevices=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
ProtectProc=invisible
`;
}

export function systemdUnit(plan: ServicePlan): string {
  const { project, home, user } = plan;
  // The service's own shell opens the log: root would follow a link there as well.
  const command = [
    "/bin/sh",
    "-c",
    'exec "$0" "$@" >>"$HEARTH_HOME/logs/supervisor.log" 2>&1',
    ...commandOf(plan),
  ];
  return `[Unit]
Description=Hearth: AI gateway and notes sync
Documentation=file:${percents(project).replaceAll(" ", "%%20")}/docs/operate.md
After=network-online.target
Wants=network-online.target

[Service]
Type=exec
${user === undefined ? "" : `User=${user}\n`}ExecStart=${command.map((word) => quoted(word).replaceAll("$", "$$$$")).join(" ")}
WorkingDirectory=${percents(project)}
${Object.entries(environmentOf(plan))
  .map(([name, value]) => `Environment=${quoted(`${name}=${value}`)}`)
  .join("\n")}
# \`hearth down\` ends with 0 and stays down; a crash is started again.
Restart=on-failure
RestartSec=2
# What the supervisor started serves on when it crashes, and is found again by the next one.
KillMode=process
TimeoutStopSec=${STOP_WITHIN_SECONDS}
${RESTRICTIONS}
${user === undefined ? "" : isolation(home)}
[Install]
WantedBy=${user === undefined ? "default.target" : "multi-user.target"}
`;
}

/** The launchd property list. */
export function launchdPlist(plan: ServicePlan): string {
  const { project, home, user } = plan;
  const log = escaped(`${home}/logs/supervisor.log`);
  const variables = Object.entries(environmentOf(plan))
    .map(
      ([name, value]) =>
        `    <key>${escaped(name)}</key><string>${escaped(value)}</string>`,
    )
    .join("\n");
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
  <key>Label</key><string>${LAUNCHD_LABEL}</string>${user === undefined ? "" : `\n  <key>UserName</key><string>${escaped(user)}</string>`}
  <key>ProgramArguments</key>
  <array>
${commandOf(plan)
  .map((word) => `    <string>${escaped(word)}</string>`)
  .join("\n")}
  </array>
  <key>WorkingDirectory</key><string>${escaped(project)}</string>
  <key>EnvironmentVariables</key>
  <dict>
${variables}
  </dict>
  <key>StandardOutPath</key><string>${log}</string>
  <key>StandardErrorPath</key><string>${log}</string>
  <key>Umask</key><integer>63</integer>
  <key>RunAtLoad</key><true/>
  <!-- hearth down ends with 0 and stays down; a crash is started again. -->
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <!-- What the supervisor started serves on when it crashes. -->
  <key>AbandonProcessGroup</key><true/>
  <key>ExitTimeOut</key><integer>${STOP_WITHIN_SECONDS}</integer>
</dict>
</plist>
`;
}

/** A word of a unit file: systemd reads quotes, backslashes and percents; in commands, not in variables, dollars too. */
function quoted(text: string): string {
  const inside = percents(text).replaceAll("\\", "\\\\").replaceAll('"', '\\"');
  return `"${inside}"`;
}

function percents(text: string): string {
  return text.replaceAll("%", "%%");
}

function escaped(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;");
}
