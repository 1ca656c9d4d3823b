import { expiredCertificate } from "../config/config-mistakes.ts";
import { twoHosts } from "../config/stack-settings.ts";
import type { StackEngines } from "../engine.ts";
import { loginRoles } from "./adopt.ts";
import { findChangedPasswords } from "./changed-passwords.ts";
import { findDisagreements, silentHost, type Finding } from "./findings.ts";
import { ANSWERS_WITHIN_MS, failureOf, probeHosts } from "./host-view.ts";
import { findChangedIdentity } from "./kept-settings.ts";
import { readLock } from "./lock.ts";
import { findLeftoverPlugins } from "./processes.ts";
import { isReadOnly } from "./postgres-copy.ts";
import { rotateCommand, rotationIn } from "./rotate.ts";
import { readSettings, type Session } from "./session.ts";
import { readState, ROLE_TYPE } from "./state.ts";

const RUN = "npm run deploy -- ";

const UNFINISHED_UPGRADE: Finding = {
  what: "Postgres is read-only, as while it is upgraded: calls with known keys are recorded later, all changes are rejected",
  fix: `wait for the upgrade to end; if it was interrupted: ${RUN}upgrade postgres`,
};

/**
 * Compares state, hosts, Postgres and this machine without changes; returns each disagreement with the command that fixes it.
 */
export async function examine(session: Session): Promise<readonly Finding[]> {
  const { engines, stack } = session;
  const config = await readSettings(session);
  const rotation = rotationIn(config);
  const postgres = engines[config.placement.postgres];
  const [hosts, roles, readOnly, state, here, passwords] = await Promise.all([
    probeHosts(engines),
    loginRoles(postgres, ANSWERS_WITHIN_MS).catch(() => null),
    isReadOnly(postgres).catch(() => false),
    readState(stack),
    checkThisMachine(session),
    // During a rotation, they differ.
    rotation === null
      ? findChangedPasswords(engines, config, { roles: true })
      : [],
  ]);
  const found = [
    ...checkSettings(config),
    ...(await findSilentHosts(engines, rotation !== null)),
    ...(readOnly ? [UNFINISHED_UPGRADE] : []),
    ...findChangedIdentity(engines, config, state),
    ...findDisagreements({
      state,
      hosts,
      engines,
      postgresOn: config.placement.postgres,
      roles,
    }),
  ];
  return rotation === null
    ? [...here, ...found, ...passwords]
    : [
        ...here,
        ...withoutRejectedCommands(
          found,
          `${RUN}${rotateCommand(rotation)}`,
          state.resources.some(({ type }) => type === ROLE_TYPE),
        ),
      ];
}

async function findSilentHosts(
  engines: StackEngines,
  isRotating: boolean,
): Promise<readonly Finding[]> {
  const found = (["a", "b"] as const).map(async (host) => {
    const engine = engines[host];
    const failure = await failureOf(engine);
    return failure === null
      ? []
      : [silentHost(host, engine, failure, isRotating)];
  });
  return (await Promise.all(found)).flat();
}

/**
 * The findings during a rotation, without commands that are rejected until it is complete: first the command that completes
 * it, then another check. `adopt` is rejected if the state contains login roles.
 */
export function withoutRejectedCommands(
  found: readonly Finding[],
  resume: string,
  rolesInState: boolean,
): readonly Finding[] {
  const rejected = rolesInState
    ? /npm run deploy -- (up|adopt|rotate master --end)\b/
    : /npm run deploy -- (up|rotate master --end)\b/;
  return found.map(({ what, fix }) => ({
    what,
    fix:
      fix !== resume && rejected.test(fix)
        ? `${resume}, then ${RUN}doctor again; a rotation requires both hosts and all containers running (\`docker start NAME\` on the host; on a replaced host, ${resume} --refresh creates them)`
        : fix,
  }));
}

async function checkThisMachine(session: Session): Promise<readonly Finding[]> {
  const lock = await readLock(session);
  const left = await findLeftoverPlugins();
  return [
    ...(lock === null
      ? []
      : [
          {
            what: `the stack is locked by ${lock.run}${lock.holder === "ended" ? ", which has ended" : ""}`,
            fix:
              lock.holder === "ended"
                ? `${RUN}cancel`
                : `wait for it to end; if it is stuck, end it, then ${RUN}cancel`,
          },
        ]),
    ...left.map(({ pid, program }) => ({
      what: `${program} (process ${pid}) is left over from a killed run`,
      fix: `${RUN}cancel`,
    })),
  ];
}

export function checkSettings(
  config: Awaited<ReturnType<typeof readSettings>>,
): readonly Finding[] {
  const rotation = rotationIn(config);
  const { masterKeyPreviousUntil: until } = config;
  const expired = expiredCertificate(config, twoHosts);
  return [
    ...(expired === null
      ? []
      : [{ what: expired.what, fix: `${expired.fix}, then ${RUN}up` }]),
    ...(rotation === null
      ? []
      : [
          {
            what: `a rotation of ${rotation.of} is unfinished`,
            fix: `${RUN}${rotateCommand(rotation)}`,
          },
        ]),
    ...(config.importRoles === "no"
      ? []
      : [
          {
            what: "hearth:importRoles is still set; it is only needed for one up after a lost state",
            fix: "npx pulumi config rm hearth:importRoles",
          },
        ]),
    ...(until === undefined || Date.parse(until) > Date.now()
      ? []
      : [
          {
            what: `the old master key expired at ${until}, but gateways may still have it`,
            fix: `${RUN}rotate master --end`,
          },
        ]),
  ];
}
