import { loginRoles } from "./adopt.ts";
import { findDisagreements, type Finding } from "./findings.ts";
import { answersWithinMs, lookAt } from "./host-view.ts";
import { readLock } from "./lock.ts";
import { leftOverPlugins } from "./processes.ts";
import { rotateCommand, rotationIn } from "./rotate.ts";
import { readSettings, type Session } from "./session.ts";
import { readState } from "./state.ts";

const run = "npm run deploy -- ";

/** Looks at state, hosts, Postgres and this machine, changes nothing, and gives what does not fit with the command that mends it. */
export async function examine(session: Session): Promise<readonly Finding[]> {
  const { engines, stack } = session;
  const config = await readSettings(session);
  const [a, b] = await Promise.all([lookAt(engines.a), lookAt(engines.b)]);
  const roles = await loginRoles(
    engines[config.placement.postgres],
    answersWithinMs,
  ).catch(() => null);
  return [
    ...(await ofThisMachine(session)),
    ...ofSettings(config),
    ...findDisagreements({
      state: await readState(stack),
      hosts: { a, b },
      roles,
    }),
  ];
}

async function ofThisMachine(session: Session): Promise<readonly Finding[]> {
  const lock = await readLock(session);
  const left = await leftOverPlugins();
  return [
    ...(lock === null
      ? []
      : [
          {
            what: `the stack is locked since ${lock.timestamp} by process ${lock.pid} on ${lock.hostname}${lock.dead ? ", which is gone" : ""}`,
            mend: lock.dead
              ? `${run}cancel`
              : `wait for it; if it will never end: ${run}cancel`,
          },
        ]),
    ...left.map(({ pid, program }) => ({
      what: `${program} (process ${pid}) is left over from a run that was killed`,
      mend: `${run}cancel`,
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
            what: `a rotation of ${rotation.of} is not over`,
            mend: `${run}${rotateCommand(rotation)}`,
          },
        ]),
    ...(config.importRoles === "no"
      ? []
      : [
          {
            what: "hearth:importRoles is still set, which is for one up after a lost state",
            mend: "npx pulumi config rm hearth:importRoles",
          },
        ]),
    ...(until === undefined || Date.parse(until) > Date.now()
      ? []
      : [
          {
            what: `the old master key is refused since ${until}, and still in the configuration`,
            mend: `${run}rotate master --end`,
          },
        ]),
  ];
}
