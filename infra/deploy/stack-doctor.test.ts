import { expect, test } from "vitest";
import { withoutRejectedCommands } from "./stack-doctor.ts";

const RUN = "npm run deploy -- ";
const resume = `${RUN}rotate master`;
const FOUND = [
  { what: "a rotation of master is not over", fix: resume },
  { what: "hearth-edge is on no host", fix: `${RUN}up --refresh` },
  { what: "the old key is refused", fix: `${RUN}rotate master --end` },
  { what: "hearth-redis is not in the state", fix: `${RUN}adopt` },
  { what: "hearth-gateway is unhealthy", fix: "`docker logs` says why" },
];
const instead = `${RUN}rotate master, then ${RUN}doctor again; a rotation requires both hosts and all containers running (\`docker start NAME\` on the host; on a replaced host, ${resume} --refresh creates them)`;

test("during a rotation no command is shown that is rejected until it is complete", () => {
  expect(
    withoutRejectedCommands(FOUND, resume, true).map(({ fix }) => fix),
  ).toEqual([resume, instead, instead, instead, "`docker logs` says why"]);
});

test("with the state lost, adopt is not rejected", () => {
  const fixes = withoutRejectedCommands(FOUND, resume, false).map(
    ({ fix }) => fix,
  );
  expect(fixes[3]).toBe(`${RUN}adopt`);
});
