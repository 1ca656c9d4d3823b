// Replaces the nodejs language host where it is not available: see ../README.md. It implements the essential part: it runs
// `@pulumi/pulumi/cmd/run`, the package's own entry, with the project's program, and reports the result.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import * as grpc from "@grpc/grpc-js";

interface RunRequest {
  getOrganization(): string;
  getProject(): string;
  getStack(): string;
  getPwd(): string;
  getDryrun(): boolean;
  getParallel(): number;
  getMonitorAddress(): string;
  getConfigMap(): { forEach(each: (value: string, key: string) => void): void };
  getConfigsecretkeysList(): readonly string[];
  getInfo():
    { getRootDirectory(): string; getEntryPoint(): string } | undefined;
}
interface RunResponse {
  setError(text: string): void;
  setBail(bail: boolean): void;
}
type Handler = grpc.handleUnaryCall<unknown, unknown>;

const require = createRequire(import.meta.url);
const { LanguageRuntimeService } =
  require("@pulumi/pulumi/proto/language_grpc_pb.js") as {
    LanguageRuntimeService: grpc.ServiceDefinition;
  };
const messages = require("@pulumi/pulumi/proto/language_pb.js") as Record<
  "RunResponse" | "GetRequiredPackagesResponse" | "LanguageHandshakeResponse",
  new () => unknown
>;
const { PluginInfo } = require("@pulumi/pulumi/proto/plugin_pb.js") as {
  PluginInfo: new () => { setVersion(version: string): void };
};
const { Empty } = require("google-protobuf/google/protobuf/empty_pb.js") as {
  Empty: new () => unknown;
};
const { version } = require("@pulumi/pulumi/package.json") as {
  readonly version: string;
};

/** The exit code by which the package reports that the error was already shown. */
const SHOWN_ALREADY = 32;
const engineAddress = process.argv.slice(2).find((arg) => !arg.startsWith("-"));
let child: ReturnType<typeof spawn> | undefined;

function run(request: RunRequest): Promise<RunResponse> {
  const program = require.resolve("@pulumi/pulumi/cmd/run");
  const info = request.getInfo();
  const config: Record<string, string> = {};
  request.getConfigMap().forEach((value, key) => (config[key] = value));
  const flags: Readonly<Record<string, string>> = {
    monitor: request.getMonitorAddress(),
    engine: engineAddress ?? "",
    organization: request.getOrganization(),
    project: request.getProject(),
    stack: request.getStack(),
    pwd: request.getPwd(),
    parallel: String(request.getParallel()),
    "root-directory": info?.getRootDirectory() ?? "",
  };
  child = spawn(
    process.execPath,
    [
      program,
      ...Object.entries(flags).map(([name, value]) => `--${name}=${value}`),
      ...(request.getDryrun() ? ["--dry-run"] : []),
      info?.getEntryPoint() ?? ".",
    ],
    {
      cwd: join(request.getPwd()),
      stdio: ["ignore", "inherit", "inherit"],
      env: {
        ...process.env,
        PULUMI_CONFIG: JSON.stringify(config),
        PULUMI_CONFIG_SECRET_KEYS: JSON.stringify(
          request.getConfigsecretkeysList(),
        ),
      },
    },
  );
  const running = child;
  return new Promise((resolve, reject) => {
    running.on("error", reject);
    running.on("exit", (code) => {
      const response = new messages.RunResponse() as RunResponse;
      if (code === SHOWN_ALREADY) {
        response.setBail(true);
      } else if (code !== 0) {
        response.setError(`Program exited with non-zero exit code: ${code}`);
      }
      resolve(response);
    });
  });
}

function answering(make: () => unknown): Handler {
  return (_call, done) => done(null, make());
}

const server = new grpc.Server();
server.addService(LanguageRuntimeService, {
  handshake: answering(() => new messages.LanguageHandshakeResponse()),
  getPluginInfo: answering(() => {
    const info = new PluginInfo();
    info.setVersion(version);
    return info;
  }),
  // The engine loads a plugin when the first resource of it is registered.
  getRequiredPackages: answering(
    () => new messages.GetRequiredPackagesResponse(),
  ),
  run: ((call, done) => {
    run(call.request as RunRequest).then(
      (response) => done(null, response),
      (error: Error) => done({ code: grpc.status.UNKNOWN, ...error }),
    );
  }) satisfies Handler,
  cancel: ((_call, done) => {
    child?.kill();
    done(null, new Empty());
  }) satisfies Handler,
});
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
