import { expect, test } from "vitest";
import { selectLeftovers } from "./processes.ts";

test("plugins without a parent engine are leftovers, those of a current run are not", () => {
  const listing = `
    1     0 /sbin/init
  100     1 pulumi up --stack home
  101   100 /home/me/.pulumi/plugins/resource-docker-v5.2.0/pulumi-resource-docker 127.0.0.1:4000
  102   100 pulumi-language-nodejs 127.0.0.1:4000
  200     1 /home/me/.pulumi/plugins/resource-docker-v5.2.0/pulumi-resource-docker 127.0.0.1:4001
  201     1 /home/me/.pulumi/plugins/resource-postgresql-v3.18.1/pulumi-resource-postgresql 127.0.0.1:4001
  202    99 pulumi-language-nodejs 127.0.0.1:4001
  203     1 /home/me/.pulumi/plugins/resource-kubernetes-v4.34.2/pulumi-resource-kubernetes 127.0.0.1:4001
  300     1 pulumi-resource-aws 127.0.0.1:4002
  400     1 vim notes/pulumi-resource-docker.md
`;
  expect(selectLeftovers(listing)).toEqual([
    {
      pid: 200,
      program: "pulumi-resource-docker",
    },
    {
      pid: 201,
      program: "pulumi-resource-postgresql",
    },
    {
      pid: 202,
      program: "pulumi-language-nodejs",
    },
    {
      pid: 203,
      program: "pulumi-resource-kubernetes",
    },
  ]);
});
