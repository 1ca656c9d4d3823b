import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DAY_MS } from "../../core/duration.ts";
import { podList, type Json } from "./pod-samples.ts";
import { makeSelfSigned } from "./self-signed.ts";

export interface SmallKube {
  /** Of a pod in this cluster. */
  readonly env: Readonly<Record<string, string>>;
  /** The mounted files of its service account. */
  readonly serviceAccount: string;
  /** The pods in its answer. */
  pods: readonly Json[];
  /** The log of each container, by "pod/container"; empty if no node runs it, and the API answers 400 for others. */
  readonly logs: Map<string, string>;
  /** Received requests, such as "/api/v1/namespaces/hearth/pods?…". */
  readonly requests: string[];
  /** hang: takes requests and never answers; forbid: a Role without the verb. */
  mode: "answer" | "hang" | "forbid";
  /** Mounts another token, and accepts only this one. */
  readonly rotateToken: () => void;
  /** Accepts only a token that is not mounted. */
  readonly revokeToken: () => void;
  readonly close: () => Promise<void>;
}

/** Implements the part of Kubernetes' API that the pod runtime uses, over TLS, for tests without a cluster. */
export async function startSmallKube(): Promise<SmallKube> {
  const serviceAccount = mkdtempSync(join(tmpdir(), "hearth-test-kube-"));
  const { cert, key } = makeSelfSigned(new Date(Date.now() + DAY_MS));
  let accepted = "token-0";
  let issued = 0;
  mount("ca.crt", cert);
  mount("namespace", "hearth");
  mount("token", accepted);

  function mount(name: string, text: string): void {
    writeFileSync(join(serviceAccount, name), text);
  }

  const server = createServer({ cert, key }, (request, response) => {
    const { pathname, searchParams } = new URL(
      request.url ?? "",
      "https://kubernetes",
    );
    kube.requests.push(request.url ?? "");
    const answer = (status: number, type: string, body: string) =>
      response.writeHead(status, { "content-type": type }).end(body);
    const fail = (code: number, reason: string, message: string) =>
      answer(
        code,
        "application/json",
        JSON.stringify({
          kind: "Status",
          apiVersion: "v1",
          metadata: {},
          status: "Failure",
          message,
          reason,
          code,
        }),
      );
    const [, pod = "", isLog] =
      /^\/api\/v1\/namespaces\/hearth\/pods(?:\/([^/]+)(\/log))?$/.exec(
        pathname,
      ) ?? [];
    if (kube.mode === "hang") {
      return;
    }
    if (request.headers.authorization !== `Bearer ${accepted}`) {
      fail(401, "Unauthorized", "Unauthorized");
    } else if (kube.mode === "forbid") {
      fail(
        403,
        "Forbidden",
        'pods is forbidden: User "system:serviceaccount:hearth:hearth-supervisor" cannot list resource "pods" in API group "" in the namespace "hearth"',
      );
    } else if (isLog === undefined) {
      answer(200, "application/json", podList(kube.pods));
    } else {
      const container = searchParams.get("container") ?? "";
      const log = kube.logs.get(`${pod}/${container}`);
      if (log === "") {
        response.writeHead(204).end();
        return;
      }
      if (log === undefined) {
        fail(
          400,
          "BadRequest",
          `container "${container}" in pod "${pod}" is waiting to start: ContainerCreating`,
        );
        return;
      }
      // In two parts that divide a character of two bytes.
      const bytes = Buffer.from(lastOf(log, searchParams));
      const middle = bytes.lastIndexOf(0xc3) + 1;
      response.writeHead(200, { "content-type": "text/plain" });
      response.write(bytes.subarray(0, middle));
      setImmediate(() => response.end(bytes.subarray(middle)));
    }
  });
  await new Promise<void>((resolve) =>
    server.listen(0, "localhost", () => resolve()),
  );

  const kube: SmallKube = {
    env: {
      KUBERNETES_SERVICE_HOST: "localhost",
      KUBERNETES_SERVICE_PORT: String((server.address() as AddressInfo).port),
    },
    serviceAccount,
    pods: [],
    logs: new Map(),
    requests: [],
    mode: "answer",
    rotateToken() {
      issued += 1;
      accepted = `token-${issued}`;
      mount("token", `${accepted}\n`);
    },
    revokeToken() {
      accepted = "token-of-another-pod";
    },
    close: () =>
      new Promise((resolve) => {
        rmSync(serviceAccount, { recursive: true, force: true });
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  return kube;
}

/** The last lines as requested; each begins with its time, which is sent only if requested. */
function lastOf(log: string, query: URLSearchParams): string {
  const lines = log
    .split("\n")
    .filter((line) => line !== "")
    .slice(-Number(query.get("tailLines")));
  return lines
    .map((line) =>
      query.get("timestamps") === "true"
        ? line
        : line.slice(line.indexOf(" ") + 1),
    )
    .map((line) => `${line}\n`)
    .join("");
}
