import { z } from "zod";
import { askHttp } from "../checks/http-get.ts";
import { readVariable, type Environment } from "../../core/environment.ts";
import { Failure } from "../../core/failure.ts";
import { withoutTrailingSlashes } from "../../core/trailing-slashes.ts";

/** A local model runner that answered. */
export interface FoundRunner {
  /** "Ollama", "LM Studio", … or the variable that names it. */
  readonly name: string;
  /** Its address without credentials, for people. */
  readonly address: string;
  /** The value of `api_base`: the address, or a reference to the variable with it. */
  readonly apiBase: string;
  readonly provider: "ollama" | "openai";
  readonly models: readonly string[];
}

/** A model of a runner, as the configuration and POST /model/new have it. */
export interface Entry {
  readonly model_name: string;
  readonly provider_params: {
    readonly model: string;
    readonly api_base: string;
    /** It answered as a runner does, so it costs nothing whatever its models are called. */
    readonly local: true;
  };
  readonly model_info: { readonly mode: "chat" | "embedding" };
}

interface Candidate {
  readonly name: string;
  readonly url: string;
  readonly apiBase?: string;
  readonly speaks: readonly ("ollama" | "openai")[];
}

const USUAL: readonly Candidate[] = [
  { name: "Ollama", url: "http://127.0.0.1:11434", speaks: ["ollama"] },
  { name: "LM Studio", url: "http://127.0.0.1:1234", speaks: ["openai"] },
  { name: "llama.cpp", url: "http://127.0.0.1:8080", speaks: ["openai"] },
  { name: "vLLM", url: "http://127.0.0.1:8000", speaks: ["openai"] },
];
/** Variables with the address of a runner. */
export const RUNNER_VARIABLES = [
  "LOCAL_RUNNER_A_URL",
  "LOCAL_RUNNER_B_URL",
] as const;
/** Where runners are looked for without an address, for people. */
export const USUAL_PLACES: readonly string[] = [
  ...USUAL.map(({ name, url }) => `${name} on port ${new URL(url).port}`),
  ...RUNNER_VARIABLES,
];
const USUAL_TIMEOUT_MS = 1500;

const ollamaTags = z.object({
  models: z.array(z.object({ name: z.string().min(1) })),
});
const openaiModels = z.object({
  data: z.array(z.object({ id: z.string().min(1) })),
});

/**
 * Probes runners at their default addresses, at LOCAL_RUNNER_A_URL and _B_URL, and at `urls`, concurrently; those that do not
 * answer within the timeout are left out.
 */
export async function findRunners(
  env: Environment,
  urls: readonly string[] = [],
  timeoutMs: number = USUAL_TIMEOUT_MS,
  places: readonly Candidate[] = USUAL,
): Promise<readonly FoundRunner[]> {
  const candidates = [...places, ...named(env), ...urls.map(given)];
  const answers = await Promise.all(
    candidates.map((candidate) => ask(candidate, timeoutMs)),
  );
  const found = answers.filter((runner) => runner !== undefined);
  // A variable often names one of the default addresses: the later, more specific name is kept.
  return found.filter(
    (runner, index) =>
      !found
        .slice(index + 1)
        .some(({ address }) => sameAddress(address, runner.address)),
  );
}

/** The models of a runner, each under its own name. */
export function entriesOf(runner: FoundRunner): readonly Entry[] {
  return runner.models.map((model) => ({
    model_name: model,
    provider_params: {
      model: `${runner.provider}/${model}`,
      api_base: runner.apiBase,
      local: true,
    },
    model_info: {
      mode: /embed|bge-|e5-|gte-/i.test(model) ? "embedding" : "chat",
    },
  }));
}

function named(env: Environment): readonly Candidate[] {
  return RUNNER_VARIABLES.flatMap((variable) => {
    const url = readVariable(variable, env);
    return url === undefined || !URL.canParse(url)
      ? []
      : [
          {
            name: variable,
            url,
            apiBase: `os.environ/${variable}`,
            speaks: ["ollama", "openai"] as const,
          },
        ];
  });
}

function given(url: string): Candidate {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new Failure(
      `"${url}" is not an address of a runner: use one such as http://192.168.1.10:11434.`,
    );
  }
  return { name: "runner", url, speaks: ["ollama", "openai"] };
}

async function ask(
  candidate: Candidate,
  timeoutMs: number,
): Promise<FoundRunner | undefined> {
  const base = withoutTrailingSlashes(candidate.url).replace(/\/v1$/, "");
  for (const dialect of candidate.speaks) {
    const models = await modelsOf(base, dialect, timeoutMs);
    if (models === undefined) {
      continue;
    }
    const address = withoutCredentials(base);
    return {
      name: candidate.name,
      address,
      apiBase:
        candidate.apiBase ?? (dialect === "openai" ? `${base}/v1` : base),
      provider: dialect,
      models: [...new Set(models)].toSorted(),
    };
  }
  return undefined;
}

async function modelsOf(
  base: string,
  dialect: "ollama" | "openai",
  timeoutMs: number,
): Promise<readonly string[] | undefined> {
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const path = dialect === "ollama" ? "/api/tags" : "/v1/models";
    const answer = await askHttp(`${base}${path}`, { signal });
    if (answer.status !== 200) {
      return undefined;
    }
    const body: unknown = JSON.parse(answer.body);
    return dialect === "ollama"
      ? ollamaTags.parse(body).models.map(({ name }) => name)
      : openaiModels.parse(body).data.map(({ id }) => id);
  } catch {
    // No answer, or something other than a runner: both mean that none was found.
    return undefined;
  }
}

/** An address to show. */
export function withoutCredentials(url: string): string {
  const parsed = new URL(url);
  parsed.username = "";
  parsed.password = "";
  return parsed.href.replace(/\/$/, "");
}

function sameAddress(a: string, b: string): boolean {
  const plain = (url: string) => url.replace("//localhost", "//127.0.0.1");
  return plain(a) === plain(b);
}
