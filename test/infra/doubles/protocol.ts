import { createRequire } from "node:module";
import * as grpc from "@grpc/grpc-js";

export type Values = Readonly<Record<string, unknown>>;

/** A double's implementation of one resource type. State is what the engine stores of it. */
export interface ResourceDouble {
  /** Messages about inputs that the real plugin rejects. */
  readonly check?: (inputs: Values) => readonly string[];
  /** Names of properties by the effect of a change. */
  readonly diff: (
    state: Values,
    inputs: Values,
  ) => {
    readonly replaces: readonly string[];
    readonly updates: readonly string[];
  };
  /** Whether the old resource is deleted before the new one is created. */
  readonly deleteBeforeReplace: boolean;
  readonly create: (
    inputs: Values,
  ) => Promise<{ readonly id: string; readonly state: Values }>;
  /** null: it no longer exists. */
  readonly read: (id: string, state: Values) => Promise<Values | null>;
  readonly update: (
    id: string,
    state: Values,
    inputs: Values,
  ) => Promise<Values>;
  readonly delete: (id: string, state: Values) => Promise<void>;
}

/** Created but unhealthy: it exists under this id, and the next `up` replaces it, or updates it as the engine does by itself. */
export class CreatedUnhealthy extends Error {
  readonly id: string;
  readonly state: Values;
  constructor(
    id: string,
    state: Values,
    reason: string,
    next: "replace" | "update" = "replace",
  ) {
    super(reason);
    this.id = id;
    this.state = next === "replace" ? { ...state, [UNWELL]: true } : state;
  }
}

/** Marks the state of a resource that was created unhealthy. */
export const UNWELL = "__unwell";

const require = createRequire(import.meta.url);

interface Message {
  readonly [method: string]: (...values: unknown[]) => never;
}
const messages = require("@pulumi/pulumi/proto/provider_pb.js") as Record<
  string,
  new () => Message
>;
const { ResourceProviderService } =
  require("@pulumi/pulumi/proto/provider_grpc_pb.js") as {
    ResourceProviderService: grpc.ServiceDefinition;
  };
const { PluginInfo } = require("@pulumi/pulumi/proto/plugin_pb.js") as {
  PluginInfo: new () => Message;
};
const { Status } = require("@pulumi/pulumi/proto/status_pb.js") as {
  Status: new () => Message;
};
const struct = require("google-protobuf/google/protobuf/struct_pb.js") as {
  Struct: { fromJavaScript(values: unknown): unknown };
};
const { Empty } = require("google-protobuf/google/protobuf/empty_pb.js") as {
  Empty: new () => Message;
};
const { Any } = require("google-protobuf/google/protobuf/any_pb.js") as {
  Any: new () => Message;
};

/**
 * Serves Pulumi's plugin protocol for some resource types and prints the port as its first line, as the engine expects. The
 * engine starts one process for each provider resource, so nothing is stored here: state is in Docker and in Postgres.
 */
export function serveDouble(
  /** Version of the replaced plugin. */
  version: string,
  resourcesOf: (
    configuration: Values,
  ) => Readonly<Record<string, ResourceDouble>>,
): void {
  let resources: Readonly<Record<string, ResourceDouble>> = {};
  const resourceOf = (request: Message): ResourceDouble => {
    const type =
      String(request.getUrn?.()).split("::")[2]?.split("$").at(-1) ?? "";
    const found = resources[type];
    if (found === undefined) {
      throw new Error(`the doubles do not know the resource type ${type}`);
    }
    return found;
  };
  const methods: Record<
    string,
    (request: Message) => Promise<unknown> | unknown
  > = {
    getPluginInfo: () => build(new PluginInfo(), { Version: version }),
    checkConfig: (request) =>
      answer("CheckResponse", { Inputs: toStruct(values(request, "getNews")) }),
    diffConfig: (request) =>
      answer(
        "DiffResponse",
        diffProvider(values(request, "getOlds"), values(request, "getNews")),
      ),
    configure: (request) => {
      resources = resourcesOf(values(request, "getArgs"));
      return answer("ConfigureResponse", {
        Acceptsecrets: false,
        Supportspreview: false,
        Acceptresources: false,
        Acceptoutputs: false,
      });
    },
    check: (request) => {
      const news = values(request, "getNews");
      const { CheckFailure } = messages as Record<string, new () => Message>;
      const failures = (resourceOf(request).check?.(news) ?? []).map((reason) =>
        build(new CheckFailure!(), { Reason: reason }),
      );
      return answer("CheckResponse", {
        Inputs: toStruct(news),
        FailuresList: failures,
      });
    },
    diff: (request) => {
      const double = resourceOf(request);
      const state = values(request, "getOlds");
      const { replaces, updates } =
        state[UNWELL] === true
          ? { replaces: [UNWELL], updates: [] }
          : double.diff(state, values(request, "getNews"));
      return answer("DiffResponse", {
        Changes: replaces.length + updates.length > 0 ? 2 : 1,
        ReplacesList: replaces,
        DiffsList: [...replaces, ...updates],
        Deletebeforereplace: double.deleteBeforeReplace,
      });
    },
    create: async (request) => {
      const { id, state } = await resourceOf(request).create(
        values(request, "getProperties"),
      );
      return answer("CreateResponse", { Id: id, Properties: toStruct(state) });
    },
    read: async (request) => {
      const id = String(request.getId?.());
      const state = await resourceOf(request).read(
        id,
        values(request, "getProperties"),
      );
      return answer(
        "ReadResponse",
        state === null
          ? { Id: "" }
          : {
              Id: id,
              Properties: toStruct(state),
              Inputs: toStruct(values(request, "getInputs")),
            },
      );
    },
    update: async (request) =>
      answer("UpdateResponse", {
        Properties: toStruct(
          await resourceOf(request).update(
            String(request.getId?.()),
            values(request, "getOlds"),
            values(request, "getNews"),
          ),
        ),
      }),
    delete: async (request) => {
      await resourceOf(request).delete(
        String(request.getId?.()),
        values(request, "getProperties"),
      );
      return new Empty();
    },
    cancel: () => new Empty(),
  };
  const server = new grpc.Server({
    "grpc.max_receive_message_length": -1,
    "grpc.max_send_message_length": -1,
  });
  server.addService(
    ResourceProviderService,
    Object.fromEntries(
      Object.entries(methods).map(([name, method]) => [name, unary(method)]),
    ),
  );
  server.bindAsync(
    "127.0.0.1:0",
    grpc.ServerCredentials.createInsecure(),
    (error, port) => {
      if (error !== null) {
        throw error;
      }
      process.stdout.write(`${port}\n`);
    },
  );
}

/** Changed hosts, options or passwords of a provider are an update, and replace nothing: no ReplacesList. */
export function diffProvider(was: Values, wanted: Values): Values {
  return { Changes: equal(was, wanted) ? 1 : 2 };
}

function unary(
  method: (request: Message) => Promise<unknown> | unknown,
): grpc.handleUnaryCall<Message, unknown> {
  return (call, done) => {
    Promise.resolve()
      .then(() => method(call.request))
      .then(
        (reply) => done(null, reply),
        (error: unknown) => done(asStatus(error), null),
      );
  };
}

function asStatus(
  error: unknown,
): Partial<grpc.StatusObject> & grpc.ServiceError {
  const message = error instanceof Error ? error.message : String(error);
  const metadata = new grpc.Metadata();
  if (error instanceof CreatedUnhealthy) {
    const details = build(new messages.ErrorResourceInitFailed!(), {
      Id: error.id,
      Properties: toStruct(error.state),
      ReasonsList: [message],
    });
    const any = new Any();
    any.pack?.(
      details.serializeBinary?.(),
      "pulumirpc.ErrorResourceInitFailed",
    );
    const status = build(new Status(), {
      Code: grpc.status.UNKNOWN,
      Message: message,
      DetailsList: [any],
    });
    metadata.add(
      "grpc-status-details-bin",
      Buffer.from(status.serializeBinary?.() as unknown as Uint8Array),
    );
  }
  return Object.assign(new Error(message), {
    code: grpc.status.UNKNOWN,
    details: message,
    metadata,
  });
}

function answer(type: string, fields: Values): Message {
  const Type = messages[type];
  if (Type === undefined) {
    throw new Error(`no message ${type}`);
  }
  return build(new Type(), fields);
}

function build(message: Message, fields: Values): Message {
  for (const [field, value] of Object.entries(fields)) {
    message[`set${field}`]?.(value);
  }
  return message;
}

function values(request: Message, getter: string): Values {
  const found = request[getter]?.() as unknown as
    { toJavaScript(): Record<string, unknown> } | undefined;
  return unwrap(found?.toJavaScript() ?? {}) as Values;
}

const SECRET_SIGNATURE = "4dabf18193072939515e22adb298388d";

/** A provider's configuration arrives with its secrets marked, regardless of what the provider accepts. */
function unwrap(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(unwrap);
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  if (SECRET_SIGNATURE in value) {
    return unwrap((value as { readonly value?: unknown }).value);
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, unwrap(each)]),
  );
}

function toStruct(state: Values): unknown {
  return struct.Struct.fromJavaScript(JSON.parse(JSON.stringify(state)));
}

/** Deep equality of JSON values; undefined counts as missing. */
export function equal(x: unknown, y: unknown): boolean {
  return canonical(x) === canonical(y);
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) {
    return `[${value.map(canonical).join()}]`;
  }
  if (typeof value !== "object" || value === null) {
    return JSON.stringify(value ?? null);
  }
  return `{${Object.entries(value)
    .filter(([, each]) => each !== undefined && each !== null)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, each]) => `${JSON.stringify(key)}:${canonical(each)}`)
    .join()}}`;
}
