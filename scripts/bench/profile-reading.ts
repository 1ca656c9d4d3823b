/** A CPU profile as V8 writes it. */
export interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: {
      readonly functionName: string;
      readonly url: string;
      readonly lineNumber: number;
    };
  }[];
  readonly samples: readonly number[];
  /** Microseconds before each sample. */
  readonly timeDeltas: readonly number[];
}

export interface Share {
  readonly name: string;
  /** Of the time that was not idle. */
  readonly share: number;
  readonly microsPerCall: number;
}

export interface Shares {
  readonly functions: readonly Share[];
  readonly files: readonly Share[];
  readonly packages: readonly Share[];
}

const IDLE = "(idle)";

/** Self times of a profile taken over `calls` calls, the largest first. */
export function readProfile(profile: CpuProfile, calls: number): Shares {
  const micros = new Map<number, number>();
  for (const [at, id] of profile.samples.entries())
    micros.set(id, (micros.get(id) ?? 0) + (profile.timeDeltas[at] ?? 0));
  const functions = new Map<string, number>();
  const files = new Map<string, number>();
  const packages = new Map<string, number>();
  let busy = 0;
  for (const { id, callFrame } of profile.nodes) {
    const self = micros.get(id) ?? 0;
    const { functionName, url, lineNumber } = callFrame;
    if (self === 0 || functionName === IDLE) continue;
    busy += self;
    const file = fileOf(url);
    const name = functionName === "" ? "(anonymous)" : functionName;
    add(
      functions,
      url === "" ? name : `${name}  ${file}:${lineNumber + 1}`,
      self,
    );
    add(files, url === "" ? name : file, self);
    add(packages, url === "" ? name : packageOf(file), self);
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

function add(sums: Map<string, number>, name: string, value: number): void {
  sums.set(name, (sums.get(name) ?? 0) + value);
}

/** `node:net`, `pg/lib/client.js`, `gateway/calls/call.ts`: without where it is installed. */
function fileOf(url: string): string {
  const installed = url.lastIndexOf("/node_modules/");
  if (installed >= 0) return url.slice(installed + "/node_modules/".length);
  const gateway = url.lastIndexOf("/gateway/");
  return gateway < 0 ? url : url.slice(gateway + 1);
}

/** The package of a file; of ours the folder. */
function packageOf(file: string): string {
  if (file.startsWith("node:")) return "node";
  const parts = file.split("/");
  return parts
    .slice(0, file.startsWith("@") || file.startsWith("gateway/") ? 2 : 1)
    .join("/");
}
