import { loginRoles } from "./adopt.ts";
import { findDisagreements, type Finding } from "./findings.ts";
import { ANSWERS_WITHIN_MS, lookAt } from "./host-view.ts";
import { readLock } from "./lock.ts";
import { leftOverPlugins } from "./processes.ts";
import { rotateCommand, rotationIn } from "./rotate.ts";
import { readSettings, type Session } from "./session.ts";
import { readState, ROLE_TYPE } from "./state.ts";

const RUN = "npm run deploy -- ";

/** Looks at state, hosts, Postgres and this machine, changes nothing, and gives what does not fit with the command that mends it. */
export async function examine(session: Session): Promise<readonly Finding[]> {
  const { engines, stack } = session;
  const config = await readSettings(session);
  const [a, b] = await Promise.all([lookAt(engines.a), lookAt(engines.b)]);
  const roles = await loginRoles(
    engines[config.placement.postgres],
    ANSWERS_WITHIN_MS,
  ).catch(() => null);
  const state = await readState(stack);
  const found = [
    ...ofSettings(config),
    ...findDisagreements({
      state,
      hosts: { a, b },
      engines,
      postgresOn: config.placement.postgres,
      roles,
    }),
  ];
  const rotation = rotationIn(config);
  return [
    ...(await ofThisMachine(session)),
    ...(rotation === null
      ? found
      : withoutRefused(
          found,
          `${RUN}${rotateCommand(rotation)}`,
          state.resources.some(({ type }) => type === ROLE_TYPE),
        )),
  ];
}

/**
 * What is found in the midst of a rotation, without commands that are refused until it is over: first comes the one that goes on
 * with it, then a look at what is left. `adopt` is refused where the state knows login roles.
 */
export function withoutRefused(
  found: readonly Finding[],
  goOn: string,
  rolesInState: boolean,
): readonly Finding[] {
  const refused = rolesInState
    ? /npm run deploy -- (up|adopt|rotate master --end)\b/
    : /npm run deploy -- (up|rotate master --end)\b/;
  return found.map(({ what, mend }) => ({
    what,
    mend:
      mend !== goOn && refused.test(mend)
        ? `${goOn}, then ${RUN}doctor again; a rotation requires both hosts and all containers running (\`docker start NAME\` on the host)`
        : mend,
  }));
}

async function ofThisMachine(session: Session): Promise<readonly Finding[]> {
  const lock = await readLock(session);
  const left = await leftOverPlugins();
  return [
    ...(lock === null
      ? []
      : [
          {
            what: `the stack has been locked since ${lock.timestamp} by process ${lock.pid} on ${lock.hostname}${lock.dead ? ", which has ended" : ""}`,
            mend: lock.dead
              ? `${RUN}cancel`
              : `wait for it to end; if it is stuck: ${RUN}cancel`,
          },
        ]),
    ...left.map(({ pid, program }) => ({
      what: `${program} (process ${pid}) is left over from a killed run`,
      mend: `${RUN}cancel`,
    })),
  ];
}

function ofSettings(
  config: Awaited<ReturnType<typeof readSettings>>,
): readonly Finding[] {
  const rotation = rotationIn(config);
  const { masterKeyPreviousUntil: until } = config;
  return [
    ...(rotation === null
      ? []
      : [
          {
            what: `a rotation of ${rotation.of} is unfinished`,
            mend: `${RUN}${rotateCommand(rotation)}`,
          },
        ]),
    ...(config.importRoles === "no"
      ? []
      : [
          {
            what: "hearth:importRoles is still set; it is only needed for one up after a lost state",
            mend: "npx pulumi config rm hearth:importRoles",
          },
        ]),
    ...(until === undefined || Date.parse(until) > Date.now()
      ? []
      : [
          {
            what: `the old master key expired at ${until} but is still in the configuration`,
            mend: `${RUN}rotate master --end`,
          },
        ]),
  ];
}
