/** A CPU profile as V8 writes it. */
interface CpuProfile {
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  /** Microseconds before each sample. */
  readonly timeDeltas: readonly number[];
}

interface ProfileNode {
  readonly id: number;
  readonly callFrame: {
    readonly functionName: string;
    readonly url: string;
    readonly lineNumber: number;
  };
  readonly children?: readonly number[];
}

export interface Share {
  readonly name: string;
  /** Share of the time that was not idle. */
  readonly share: number;
  readonly microsPerCall: number;
}

interface Shares {
  readonly functions: readonly Share[];
  readonly files: readonly Share[];
  readonly packages: readonly Share[];
}

/** Self times of a profile over `calls` calls, in descending order. */
export function readProfile(profile: CpuProfile, calls: number): Shares {
  const micros = new Map<number, number>();
  for (const [at, id] of profile.samples.entries()) {
    micros.set(id, (micros.get(id) ?? 0) + (profile.timeDeltas[at] ?? 0));
  }
  const owners = ownersOf(profile.nodes);
  const functions = new Map<string, number>();
  const files = new Map<string, number>();
  const packages = new Map<string, number>();
  let busy = 0;
  for (const { id, callFrame } of profile.nodes) {
    const self = micros.get(id) ?? 0;
    if (self === 0 || isOfProfiler(callFrame)) {
      continue;
    }
    busy += self;
    const { functionName, url, lineNumber } = callFrame;
    const name = functionName === "" ? "(anonymous)" : functionName;
    const owner = owners.get(id) ?? "";
    const file = isNode(url) ? `${url || "native"} for ${owner}` : fileOf(url);
    add(
      functions,
      isNode(url) ? `${name}  ${file}` : `${name}  ${file}:${lineNumber + 1}`,
      self,
    );
    add(files, isRuntime(callFrame) ? name : file, self);
    add(
      packages,
      isRuntime(callFrame)
        ? name
        : isNode(url)
          ? `${owner}: in Node itself`
          : packageOf(file),
      self,
    );
  }
  const sorted = (sums: ReadonlyMap<string, number>) =>
    [...sums]
      .map(([name, sum]) => ({
        name,
        share: sum / busy,
        microsPerCall: sum / calls,
      }))
      .sort((a, b) => b.share - a.share);
  return {
    functions: sorted(functions),
    files: sorted(files),
    packages: sorted(packages),
  };
}

/** For each node, the package for which Node is working: that of the nearest caller outside Node. */
function ownersOf(nodes: readonly ProfileNode[]): ReadonlyMap<number, string> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const owners = new Map<number, string>();
  const [root] = nodes;
  const waiting = root === undefined ? [] : [{ node: root, owner: EVENT_LOOP }];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const { url } = at.node.callFrame;
    const owner = isNode(url) ? at.owner : packageOf(fileOf(url));
    owners.set(at.node.id, owner);
    for (const id of at.node.children ?? []) {
      const node = byId.get(id);
      if (node !== undefined) {
        waiting.push({ node, owner });
      }
    }
  }
  return owners;
}

const EVENT_LOOP = "event loop";

function isNode(url: string): boolean {
  return url === "" || url.startsWith("node:");
}

/** `(garbage collector)`, `(program)`. */
function isRuntime({ functionName, url }: ProfileNode["callFrame"]): boolean {
  return url === "" && functionName.startsWith("(");
}

/** Idle time, and the start and stop of the profiler. */
function isOfProfiler({
  functionName,
  url,
}: ProfileNode["callFrame"]): boolean {
  return functionName === "(idle)" || url.startsWith("node:inspector");
}

function add(sums: Map<string, number>, name: string, value: number): void {
  sums.set(name, (sums.get(name) ?? 0) + value);
}

/** The path without the installation directory: `pg/lib/client.js`, `gateway/calls/call.ts`. */
function fileOf(url: string): string {
  const installed = url.lastIndexOf("/node_modules/");
  if (installed >= 0) {
    return url.slice(installed + "/node_modules/".length);
  }
  const gateway = url.lastIndexOf("/gateway/");
  return gateway < 0 ? url : url.slice(gateway + 1);
}

/** The package of a file, or its folder in this project. WebAssembly has no file. */
function packageOf(file: string): string {
  if (file.startsWith("wasm:")) {
    return "wasm";
  }
  return file
    .split("/")
    .slice(0, file.startsWith("@") || file.startsWith("gateway/") ? 2 : 1)
    .join("/");
}
