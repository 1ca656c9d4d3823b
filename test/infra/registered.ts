import * as pulumi from "@pulumi/pulumi";
import * as stackConfig from "@pulumi/pulumi/runtime/config.js";
import * as settings from "@pulumi/pulumi/runtime/settings.js";
import { secretFields } from "../../infra/config/config-schema.ts";
import { kubernetesSecrets } from "../../infra/kubernetes/kubernetes-schema.ts";
import { program } from "../../infra/index.ts";
import type { StackOutputs } from "../../infra/outputs.ts";

/** A registered resource; secrets as `{secret: value}`, provider ids unchanged. */
export interface Registered {
  readonly type: string;
  readonly name: string;
  readonly inputs: Readonly<Record<string, unknown>>;
  /** Every text in the inputs that is neither a secret nor part of one. */
  readonly plainTexts: readonly string[];
  readonly provider: string;
  readonly options: RegisteredOptions;
}

/** Options of a resource; with names of resources, not URNs. */
interface RegisteredOptions {
  readonly protect: boolean;
  readonly retainOnDelete: boolean;
  readonly dependsOn: readonly string[];
  /** For each input, the resources whose outputs it depends on. */
  readonly madeFrom: Readonly<Record<string, readonly string[]>>;
  readonly ignoreChanges: readonly string[];
  readonly secretOutputs: readonly string[];
  /** The resource whose deletion also deletes this one (deletedWith); "" for none. */
  readonly deletedWith: string;
  readonly beforeCreate: readonly string[];
  readonly deleteHooks: readonly string[];
}

/** Fields of the request that Pulumi's package sends to the engine; its mocks pass on fewer. */
interface RegisterRequest {
  getName(): string;
  getType(): string;
  getObject(): { toJavaScript(): unknown } | undefined;
  getProtect(): boolean;
  getRetainondelete(): boolean;
  getDependenciesList(): readonly string[];
  getPropertydependenciesMap(): {
    forEach(
      each: (
        from: { getUrnsList(): readonly string[] },
        property: string,
      ) => void,
    ): void;
  };
  getIgnorechangesList(): readonly string[];
  getAdditionalsecretoutputsList(): readonly string[];
  getDeletedwith(): string;
  getHooks():
    | {
        getBeforeCreateList(): readonly string[];
        getBeforeDeleteList(): readonly string[];
        getAfterDeleteList(): readonly string[];
      }
    | undefined;
}

/** Subnets of the hosts' networks, outside Docker's default pools. */
export const subnets: Readonly<Record<string, string>> = {
  "network-a": "10.201.0.0/24",
  "network-b": "10.202.0.0/24",
};

const SECRET_SIGNATURE = "4dabf18193072939515e22adb298388d";

/** Runs the whole program with Pulumi's mocks and returns the registered resources. */
export async function registerProgram(
  config: Readonly<Record<string, string>>,
): Promise<{
  readonly resources: readonly Registered[];
  readonly outputs: StackOutputs;
}> {
  const { resources, given } = await registerBy(program, config);
  return { resources, outputs: given };
}

/** Runs a program with Pulumi's mocks; returns the registered resources and the outputs. */
export async function registerBy<T>(
  anyProgram: () => Promise<T>,
  config: Readonly<Record<string, string>>,
  stack = "home",
): Promise<{ readonly resources: readonly Registered[]; readonly given: T }> {
  const resources: Omit<Registered, "options" | "plainTexts">[] = [];
  const requests = new Map<
    string,
    Pick<Registered, "options" | "plainTexts">
  >();
  await pulumi.runtime.setMocks(
    {
      newResource(args) {
        resources.push({
          type: args.type,
          name: args.name,
          inputs: showSecrets(args.inputs) as Record<string, unknown>,
          provider: args.provider ?? "",
        });
        return {
          id: `${args.name}-id`,
          state: {
            ...args.inputs,
            imageId: `sha256:of-${args.name}`,
            ipamConfigs: [{ subnet: subnets[args.name] }],
          },
        };
      },
      call: ({ inputs }) => inputs as Record<string, unknown>,
    },
    "hearth",
    stack,
    false,
  );
  const monitor = settings.getMonitor() as unknown as {
    registerResource: (request: RegisterRequest, done: unknown) => unknown;
  };
  const register = monitor.registerResource.bind(monitor);
  Object.assign(monitor, {
    registerResource: (request: RegisterRequest, done: unknown) => {
      requests.set(`${request.getType()} ${request.getName()}`, {
        options: optionsOf(request),
        // From the request itself: for mocks, a list that contains a secret is a secret as a whole.
        plainTexts: plainTextsIn(request.getObject()?.toJavaScript()),
      });
      return register(request, done);
    },
    // Pulumi's mock monitor does not implement resource hooks; without an answer, resources with hooks are not registered.
    registerResourceHook: (
      _request: unknown,
      done: (error: null, answer: object) => void,
    ) => done(null, {}),
  });
  stackConfig.setAllConfig(
    Object.fromEntries(
      Object.entries(config).map(([key, value]) => [`hearth:${key}`, value]),
    ),
    [...secretFields, ...kubernetesSecrets].map((key) => `hearth:${key}`),
  );
  let ended: { readonly given: T } | { readonly refusal: unknown } | undefined;
  await pulumi.runtime.runInPulumiStack(async () => {
    // A rejection within the stack would be unhandled elsewhere, too.
    await anyProgram().then(
      (given) => (ended = { given }),
      (refusal: unknown) => (ended = { refusal }),
    );
    return {};
  });
  // Registrations continue in the background; this waits for all of them.
  await pulumi.runtime.disconnect();
  if (ended === undefined) {
    throw new Error("the program did not end");
  }
  if ("refusal" in ended) {
    throw ended.refusal;
  }
  return {
    resources: resources.map((resource) => {
      const found = requests.get(`${resource.type} ${resource.name}`);
      if (found === undefined) {
        throw new Error(`${resource.name} was not registered`);
      }
      return { ...resource, ...found };
    }),
    given: ended.given,
  };
}

function optionsOf(request: RegisterRequest): RegisteredOptions {
  const madeFrom: Record<string, readonly string[]> = {};
  request.getPropertydependenciesMap().forEach((from, property) => {
    const urns = from.getUrnsList();
    if (urns.length > 0) {
      madeFrom[property] = urns.map(nameOf);
    }
  });
  const hooks = request.getHooks();
  return {
    protect: request.getProtect(),
    retainOnDelete: request.getRetainondelete(),
    dependsOn: request.getDependenciesList().map(nameOf),
    madeFrom,
    ignoreChanges: request.getIgnorechangesList(),
    secretOutputs: request.getAdditionalsecretoutputsList(),
    deletedWith: nameOf(request.getDeletedwith()),
    beforeCreate: hooks?.getBeforeCreateList() ?? [],
    deleteHooks: [
      ...(hooks?.getBeforeDeleteList() ?? []),
      ...(hooks?.getAfterDeleteList() ?? []),
    ],
  };
}

function nameOf(urn: string): string {
  return urn.split("::").at(-1) ?? "";
}

/** The registered containers. */
export function containersOf(
  resources: readonly Registered[],
): readonly Registered[] {
  return resources.filter(
    ({ type }) => type === "docker:index/container:Container",
  );
}

/** A list of objects, whether or not it is a secret as a whole. */
export function listOf(
  value: unknown,
): readonly Readonly<Record<string, unknown>>[] {
  if (Array.isArray(value)) {
    return value as Record<string, unknown>[];
  }
  return typeof value === "object" && value !== null && "secret" in value
    ? listOf(value.secret)
    : [];
}

function plainTextsIn(value: unknown): readonly string[] {
  if (typeof value === "string") {
    return [value];
  }
  if (
    typeof value !== "object" ||
    value === null ||
    SECRET_SIGNATURE in value
  ) {
    return [];
  }
  return Object.values(value).flatMap(plainTextsIn);
}

function showSecrets(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(showSecrets);
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  if (SECRET_SIGNATURE in value) {
    return { secret: (value as { readonly value?: unknown }).value };
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, showSecrets(each)]),
  );
}
