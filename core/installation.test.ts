import { expect, test } from "vitest";
import {
  howToSupply,
  howToSupplyGateway,
  installationOfGateway,
} from "./installation.ts";

test.each([
  [{ HEARTH_SUCCESSOR: "/home/successor.json" }, "embedded"],
  [
    { HEARTH_SUCCESSOR: "/x.json", HEARTH_EXTRA_CONFIG: "/echo.yaml" },
    "embedded",
  ],
  [{ HEARTH_EXTRA_CONFIG: "/etc/layer.yaml" }, "two-hosts"],
  [
    { KUBERNETES_SERVICE_HOST: "10.0.0.1", HEARTH_EXTRA_CONFIG: "/layer.yaml" },
    "kubernetes",
  ],
  [
    { KUBERNETES_SERVICE_HOST: "10.0.0.1", HEARTH_STACK: "grown" },
    "stack-on-kubernetes",
  ],
  [{}, "other"],
] as const)("%j is a gateway of the installation %s", (env, installation) => {
  expect(installationOfGateway(env)).toBe(installation);
});

test.each([
  ["embedded", "`service.env`", "`hearth up`"],
  ["two-hosts", "hearth:providerKeys.OPENAI_API_KEY", "npm run deploy -- up"],
  [
    "stack-on-kubernetes",
    "hearth:providerKeys.OPENAI_API_KEY",
    "npm run deploy -- up",
  ],
  ["kubernetes", "`providerKeys`", "`helm upgrade`"],
  ["other", "environment of the gateway", "restart it"],
] as const)(
  "a missing key is first stored, then set as %s takes it",
  (installation, place, effect) => {
    const advice = howToSupply("OPENAI_API_KEY", installation);
    expect(advice).toMatch(
      /^run `hearth models key OPENAI_API_KEY`, which takes effect at once, or /,
    );
    expect(advice).toContain(place);
    expect(advice).toContain(effect);
  },
);

test("the advice of a gateway on Kubernetes names its stack in each command", () => {
  const env = { KUBERNETES_SERVICE_HOST: "10.0.0.1", HEARTH_STACK: "grown" };
  expect(howToSupplyGateway("OPENAI_API_KEY", env)).toMatch(
    /run `npx pulumi config set --stack grown --secret --path hearth:providerKeys\.OPENAI_API_KEY`, then run `npm run deploy -- --stack grown up`$/,
  );
});

test.each([
  ["embedded", "set LOCAL_RUNNER_A_URL in the shell"],
  ["two-hosts", "run `npx pulumi config set hearth:localRunnerA URL`"],
  [
    "stack-on-kubernetes",
    "run `npx pulumi config set hearth:localRunnerA URL`",
  ],
  ["kubernetes", "set `localRunnerA` of the chart's values"],
] as const)(
  "the address of a runner is first entered in the console, then set as %s takes it",
  (installation, set) => {
    expect(howToSupply("LOCAL_RUNNER_A_URL", installation)).toContain(
      `enter its address on the page Models of the console, which takes effect at once, or ${set}`,
    );
  },
);

test.each([
  "embedded",
  "two-hosts",
  "stack-on-kubernetes",
  "kubernetes",
  "other",
] as const)("an address cannot be stored as a key in %s", (installation) => {
  const advice = howToSupply("AZURE_API_BASE", installation);
  expect(advice).toContain("AZURE_API_BASE");
  expect(advice).not.toMatch(/models key|providerKeys/);
});
