import { expect, test } from "vitest";
import { validConfig } from "../../test/infra/stack-config.ts";
import { kubernetesSecrets } from "../kubernetes/kubernetes-schema.ts";
import { initCluster, initHosts, settingsForCluster } from "./init-kinds.ts";

const digest = `sha256:${"0".repeat(64)}`;
const answers = {
  context: "k3s",
  "image-gateway": `registry.example.org/gateway:1@${digest}`,
  "image-supervisor": `registry.example.org/supervisor:1@${digest}`,
  hostname: "",
};

test("the answers and new secrets are a complete stack on Kubernetes", () => {
  const settings = initCluster.withAnswers(
    initCluster.newSettings(true),
    answers,
  );
  expect(initCluster.mistakes(settings)).toEqual([]);
  expect(JSON.parse(settings["cluster"] ?? "")).toEqual({ context: "k3s" });
  expect(settings).not.toHaveProperty("edge");
  const { hostname: _empty, ...given } = answers;
  expect(initCluster.answersOf(settings)).toEqual(given);
});

test("an answer replaces only its own part of a group", () => {
  const settings = {
    cluster: JSON.stringify({ context: "old", namespace: "ai" }),
    edge: JSON.stringify({ hostname: "old.example.org" }),
  };
  const { cluster, edge } = initCluster.withAnswers(settings, answers);
  expect(JSON.parse(cluster ?? "")).toEqual({
    context: "k3s",
    namespace: "ai",
  });
  expect(edge).toBeUndefined();
});

test("missing answers are reported like every other mistake", () => {
  expect(
    initCluster.mistakes(
      initCluster.withAnswers(initCluster.newSettings(true), {}),
    ),
  ).toEqual([
    "hearth:cluster.context is required: npx pulumi config set --path hearth:cluster.context grown",
    "hearth:images.gateway is required: npx pulumi config set --path hearth:images.gateway NAME:TAG@sha256:DIGEST",
    "hearth:images.supervisor is required: npx pulumi config set --path hearth:images.supervisor NAME:TAG@sha256:DIGEST",
  ]);
});

test("from two hosts, all secrets and settings that both have are taken over, so that keys and backups stay valid", () => {
  const twoHosts = {
    ...initHosts.newSettings(true),
    ...validConfig,
    edge: JSON.stringify({
      tls: "acme",
      hostname: "hearth.example.org",
      email: "you@example.org",
    }),
  };
  const settings = initCluster.withAnswers(
    { ...initCluster.newSettings(true), ...settingsForCluster(twoHosts) },
    { ...answers, hostname: "hearth.example.org" },
  );
  expect(initCluster.mistakes(settings)).toEqual([]);
  const shared = kubernetesSecrets.filter((name) => name in validConfig);
  expect(shared).toEqual(
    expect.arrayContaining(["masterKey", "saltKey", "providerKeys"]),
  );
  for (const name of [...shared, "notesUuid", "localRunnerA"]) {
    expect(settings[name], name).toBe(validConfig[name]);
  }
  expect(JSON.parse(settings["edge"] ?? "")).toEqual({
    hostname: "hearth.example.org",
  });
});
