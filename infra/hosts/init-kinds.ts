import {
  annotatedKubernetes,
  annotatedTwoHosts,
  type AnnotatedFile,
} from "../config/annotated-stack.ts";
import {
  postgresMajorOf,
  readConfig,
  type ConfigResult,
  type RawConfig,
} from "../config/config.ts";
import { readKubernetesConfig } from "../kubernetes/kubernetes-config.ts";
import { kubernetesSchema } from "../kubernetes/kubernetes-schema.ts";
import { pinnedImages } from "../images/images.ts";
import {
  answersOf,
  makeSecrets,
  QUESTIONS,
  withAnswers,
  type Question,
} from "./init-questions.ts";

type Settings = Readonly<Record<string, string>>;

/** What `init` asks and writes for one kind of stack. Settings are as Pulumi stores them: objects as JSON. */
export interface InitKind {
  readonly title: string;
  readonly stackName: string;
  readonly questions: readonly Question[];
  /** The annotated list for the head of a new file. */
  readonly list: AnnotatedFile;
  readonly answersOf: (settings: Settings) => Settings;
  readonly withAnswers: (settings: Settings, answers: Settings) => Settings;
  /** New secrets, and what only a new stack gets. */
  readonly newSettings: (isNew: boolean) => Settings;
  /** Each mistake in one sentence. */
  readonly mistakes: (settings: Settings) => readonly string[];
}

export const initHosts: InitKind = {
  title: "Hearth on two hosts",
  stackName: "home",
  questions: QUESTIONS,
  list: annotatedTwoHosts,
  answersOf,
  withAnswers,
  newSettings: (isNew) => ({
    ...makeSecrets(),
    // An existing stack keeps its own until `deploy -- upgrade postgres`.
    ...(isNew
      ? { postgresVersion: postgresMajorOf(pinnedImages.postgres) ?? "" }
      : {}),
  }),
  mistakes: (settings) => mistakesIn(readConfig, settings),
};

/** By flag: the group and the name of the setting that an answer becomes. */
const CLUSTER_SETTINGS = {
  context: ["cluster", "context"],
  "image-gateway": ["images", "gateway"],
  "image-supervisor": ["images", "supervisor"],
  hostname: ["edge", "hostname"],
} as const;

type ClusterFlag = keyof typeof CLUSTER_SETTINGS;

const CLUSTER_FLAGS = Object.keys(CLUSTER_SETTINGS) as ClusterFlag[];

const CLUSTER_QUESTIONS: Readonly<Record<ClusterFlag, string>> = {
  context:
    "Context of kubectl for the cluster, from `kubectl config get-contexts`",
  "image-gateway":
    "Image of the gateway in a registry, NAME:TAG@sha256:DIGEST (`npm run images -- --build --tag PREFIX` builds it)",
  "image-supervisor": "Image of the supervisor in a registry",
  hostname:
    "Host name of the gateway, served by the cluster's Ingress (empty: none)",
};

export const initCluster: InitKind = {
  title: "Hearth on Kubernetes",
  stackName: "grown",
  questions: CLUSTER_FLAGS.map((flag) => ({
    flag,
    ask: CLUSTER_QUESTIONS[flag],
    initial: () => "",
  })),
  list: annotatedKubernetes,
  answersOf: (settings) =>
    Object.fromEntries(
      CLUSTER_FLAGS.flatMap((flag) => {
        const [group, name] = CLUSTER_SETTINGS[flag];
        const value = groupIn(settings, group)[name];
        return typeof value === "string" ? [[flag, value]] : [];
      }),
    ),
  withAnswers: (settings, answers) =>
    CLUSTER_FLAGS.reduce<Settings>((all, flag) => {
      const [group, name] = CLUSTER_SETTINGS[flag];
      const { [name]: _before, ...others } = groupIn(all, group);
      const value = answers[flag] ?? "";
      const known = value === "" ? others : { ...others, [name]: value };
      const { [group]: _group, ...rest } = all;
      return Object.keys(known).length === 0
        ? rest
        : { ...rest, [group]: JSON.stringify(known) };
    }, settings),
  newSettings: () => {
    const { caKey: _unused, ...secrets } = makeSecrets();
    return { ...secrets, runtime: "kubernetes" };
  },
  mistakes: (settings) => mistakesIn(readKubernetesConfig, settings),
};

/** What a stack on Kubernetes takes over from one on two hosts: every setting that both have, except images, certificates of the edges and an unfinished rotation. */
export function settingsForCluster(settings: Settings): Settings {
  const { hostname, notesHostname } = groupIn(settings, "edge");
  const names = Object.entries({ hostname, notesHostname }).filter(
    ([, value]) => value !== undefined,
  );
  return {
    ...Object.fromEntries(
      Object.entries(settings).filter(
        ([key]) =>
          key in kubernetesSchema.shape &&
          ![
            "runtime",
            "images",
            "edge",
            "edgeCertificate",
            "edgeKey",
            "rotation",
          ].includes(key),
      ),
    ),
    ...(names.length === 0
      ? {}
      : { edge: JSON.stringify(Object.fromEntries(names)) }),
  };
}

function groupIn(
  settings: Settings,
  group: string,
): Readonly<Record<string, unknown>> {
  return JSON.parse(settings[group] ?? "{}") as Record<string, unknown>;
}

function mistakesIn(
  read: (raw: RawConfig) => ConfigResult<unknown>,
  settings: Settings,
): readonly string[] {
  // Secrets are encrypted when they are written.
  const result = read({ values: settings, isSecret: () => true });
  return result.ok ? [] : result.errors;
}
