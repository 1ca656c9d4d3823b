import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { inWords } from "../../../core/duration.ts";
import { readVariable, type Environment } from "../../../core/environment.ts";
import { codeOf, Failure, textOf } from "../../../core/failure.ts";
import { askHttp, type HttpAnswer } from "../../checks/http-get.ts";

/** The pods of one namespace, read through the API of the cluster that this process runs in. */
export interface KubeApi {
  readonly namespace: string;
  /**
   * Sends GET `path`, relative to the namespace, such as "pods?limit=1", and returns the body of the answer. Throws a Failure
   * that names the missing permission, the rejected token or the address that does not answer.
   */
  readonly get: (path: string, withinMs: number) => Promise<string>;
}

/** Kubernetes mounts a service account's token, its namespace and the certificate authority of the API here, in every pod. */
const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/** More than the logs of 5000 long lines. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;

/** The body of an error: https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/ */
const status = z.object({ message: z.string() });

/**
 * Plain HTTPS: the package @kubernetes/client-node takes 38 MB more memory (docs/code.md). Throws a Failure outside of a
 * cluster. `directory` contains the service account's files, which are read for each request because Kubernetes
 * replaces them: a token is valid for about an hour.
 */
export function openKubeApi(
  env: Environment,
  directory: string = SERVICE_ACCOUNT,
): KubeApi {
  const address = addressOf(env);
  const namespace =
    readVariable("HEARTH_NAMESPACE", env) ??
    readMounted(directory, "namespace");
  return {
    namespace,
    async get(path, withinMs) {
      const answer = await send(
        `${address}/api/v1/namespaces/${namespace}/${path}`,
        directory,
        withinMs,
      );
      // 204: the log of a pod that no node runs yet.
      if (answer.status !== 200 && answer.status !== 204) {
        throw rejected(answer, namespace);
      }
      return answer.body;
    },
  };
}

function addressOf(env: Environment): string {
  const host = readVariable("KUBERNETES_SERVICE_HOST", env);
  if (host === undefined) {
    throw new Failure(
      'HEARTH_RUNTIME is "kubernetes", but KUBERNETES_SERVICE_HOST is not set: this works only in a pod; elsewhere, use HEARTH_RUNTIME=none.',
    );
  }
  const port = readVariable("KUBERNETES_SERVICE_PORT", env) ?? "443";
  return `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
}

function readMounted(directory: string, name: string): string {
  const path = join(directory, name);
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    throw new Failure(
      `cannot read ${path} (${codeOf(error) ?? textOf(error)}): set automountServiceAccountToken: true for the supervisor's pod.`,
      error,
    );
  }
}

async function send(
  url: string,
  directory: string,
  withinMs: number,
): Promise<HttpAnswer> {
  const token = readMounted(directory, "token");
  const ca = readMounted(directory, "ca.crt");
  const signal = AbortSignal.timeout(withinMs);
  try {
    return await askHttp(url, {
      headers: { authorization: `Bearer ${token}`, accept: "*/*" },
      ca,
      maxBody: MAX_ANSWER_BYTES,
      signal,
    });
  } catch (error) {
    const why = signal.aborted
      ? `no answer within ${inWords(withinMs)}`
      : textOf(error);
    throw new Failure(
      `the Kubernetes API at ${new URL(url).origin} does not answer (${why}): check that network policies allow the supervisor to reach it.`,
      error,
    );
  }
}

function rejected({ status, body }: HttpAnswer, namespace: string): Failure {
  const words = messageIn(body);
  switch (status) {
    case 401:
      return new Failure(
        "the Kubernetes API rejected the service account's token (401): check that the service account of the supervisor's pod still exists, then restart the pod.",
      );
    case 403:
      // Names the account, the verb, the resource and the namespace.
      return new Failure(
        `the Kubernetes API denied access: ${words}; add this permission to the Role of the supervisor's service account in namespace ${namespace}.`,
      );
    default:
      return new Failure(
        `the Kubernetes API answered ${status}: ${words || "no reason given"}.`,
      );
  }
}

function messageIn(body: string): string {
  try {
    return status.parse(JSON.parse(body)).message;
  } catch {
    return body.trim().slice(0, 300);
  }
}
