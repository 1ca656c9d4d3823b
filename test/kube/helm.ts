import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { execute, type Execution } from "../../core/execute.ts";
import { USER_CACHE } from "../servers/user-cache.ts";

export const CHART: string = join(
  import.meta.dirname,
  "..",
  "..",
  "charts",
  "hearth",
);
/** What a chart is rendered for without a cluster. */
const KUBE_VERSION = "1.34.0";

/** Where scripts/toolchain.sh puts Helm, if it is not installed. */
export const TOOLCHAIN: string = join(USER_CACHE, "toolchain", "bin");

/** Runs Helm. Its notes about the chart's links are not part of `stderr`. */
export async function helm(
  args: readonly string[],
  input?: string,
): Promise<Execution> {
  const result = await execute("helm", args, {
    env: {
      ...process.env,
      PATH: `${process.env["PATH"] ?? ""}:${TOOLCHAIN}`,
    },
    ...(input === undefined ? {} : { input }),
  });
  if (result.startError !== undefined) {
    throw new Error(
      `helm cannot be started (${result.startError}): run scripts/toolchain.sh, which builds it.`,
    );
  }
  return {
    ...result,
    stderr: result.stderr.replace(/^walk\.go.*found symbolic link.*\n/gm, ""),
  };
}

export interface Rendered {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly data?: Readonly<Record<string, string>>;
  readonly stringData?: Readonly<Record<string, string>>;
}

/** Values as Helm reads them from a file: nested, not as --set would write them. */
export type ChartValues = Readonly<Record<string, unknown>>;

export function template(
  values: ChartValues,
  chart: string = CHART,
): Promise<Execution> {
  return helm(
    [
      "template",
      "trial",
      chart,
      "--namespace",
      "test",
      "--kube-version",
      KUBE_VERSION,
      "--values",
      "-",
    ],
    JSON.stringify(values),
  );
}

/** Every object that the chart renders, hooks included. Throws Helm's error. */
export async function render(
  values: ChartValues = {},
  chart: string = CHART,
): Promise<readonly Rendered[]> {
  const { ok, stdout, stderr } = await template(values, chart);
  if (!ok) {
    throw new Error(stderr);
  }
  return parseAllDocuments(stdout)
    .map((document) => {
      if (document.errors[0] !== undefined) {
        throw document.errors[0];
      }
      return document.toJSON() as Rendered | null;
    })
    .filter((each) => each !== null);
}

export function lint(values: ChartValues): Promise<Execution> {
  return helm(
    [
      "lint",
      CHART,
      "--strict",
      "--kube-version",
      KUBE_VERSION,
      "--values",
      "-",
    ],
    JSON.stringify(values),
  );
}
