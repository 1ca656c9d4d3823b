import { expect, test } from "vitest";
import { checkSchema } from "../../checks/config.ts";
import { withContainerChecks } from "./container-checks.ts";

const gateway = checkSchema.parse({
  name: "gateway",
  kind: "http",
  url: "http://gateway:4001/",
  heal: { restart: "gateway" },
});
const ownEdge = checkSchema.parse({
  name: "my-edge",
  kind: "container",
  container: "edge",
});

test("every container of the host is checked; stores are not restarted, and a service with its own check alerts by that", () => {
  const added = withContainerChecks(
    [gateway, ownEdge],
    ["edge", "gateway", "postgres", "redis"],
  ).slice(2);
  expect(
    added.map(({ name, kind, depends_on, heal }) => ({
      name,
      kind,
      depends_on,
      heals: heal?.restart,
    })),
  ).toEqual([
    {
      name: "gateway-container",
      kind: "container",
      depends_on: ["gateway"],
      heals: undefined,
    },
    {
      name: "postgres-container",
      kind: "container",
      depends_on: [],
      heals: undefined,
    },
    {
      name: "redis-container",
      kind: "container",
      depends_on: [],
      heals: "redis",
    },
  ]);
});

test("an operator's check with the same name takes precedence", () => {
  const own = { ...gateway, name: "redis-container" };
  expect(withContainerChecks([own], ["redis"])).toEqual([own]);
});
