import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { DAY_MS } from "../../core/duration.ts";
import { authorityFile } from "../../infra/certificates.ts";
import { buildCaddyfile } from "../../infra/caddyfile.ts";
import { ports } from "../../infra/hosts.ts";
import { freePort, listen } from "../servers/ports.ts";
import { makeSelfSigned } from "../supervisor/self-signed.ts";
import { runScript } from "./two-engines.ts";

async function startCaddy(
  directory: string,
  file: string,
): Promise<ChildProcess> {
  const toolchain = await runScript("scripts/toolchain.sh", "caddy");
  return spawn(
    join(toolchain.trim(), "bin", "caddy"),
    ["run", "--config", file, "--adapter", "caddyfile"],
    {
      stdio: "ignore",
      env: {
        ...process.env,
        XDG_DATA_HOME: directory,
        XDG_CONFIG_HOME: directory,
      },
    },
  );
}

async function stopCaddy(caddy: ChildProcess): Promise<void> {
  if (caddy.exitCode === null) {
    caddy.kill();
    await once(caddy, "exit");
  }
}

describe("the edge's real Caddy", () => {
  let directory: string;
  let gateways: readonly Server[];
  let caddy: ChildProcess;
  let edge: number;
  let notes: number;
  let probesAreLate = false;
  /** Gateways of which a probe was given up. */
  const late = new Set<string>();

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "hearth-edge-"));
    gateways = ["own", "other"].map((name) =>
      createServer((request, response) => {
        if (probesAreLate && request.url === "/health/readiness") {
          response.once("close", () => late.add(name));
          return;
        }
        request.resume().on("end", () => response.end(name));
      }),
    );
    const [own, other] = await Promise.all(
      gateways.map((gateway) => listen(gateway)),
    );
    [edge, notes] = [await freePort(), await freePort()];
    const file = join(directory, "Caddyfile");
    writeFileSync(
      file,
      buildCaddyfile({
        peer: { address: "127.0.0.1", ports },
        hasNotes: true,
        https: { tls: "none" },
      })
        .replaceAll(
          `gateway:${ports.gateway} 127.0.0.1:${ports.gatewayTls}`,
          `127.0.0.1:${own} 127.0.0.1:${other}`,
        )
        // Without the site of the other host, and with a notes store that is not running.
        .replace(/# Caddy 2\.10[\s\S]*?(?=http:\/\/:5984)/, "")
        .replace(`notes:${ports.notes}`, `127.0.0.1:${await freePort()}`)
        .replace(`http://:${ports.notes} `, `http://127.0.0.1:${notes} `)
        .replace(`http://:${ports.edge} `, `http://127.0.0.1:${edge} `),
    );
    caddy = await startCaddy(directory, file);
    await vi.waitUntil(async () => (await ask()) === "own", 60_000);
  });
  afterAll(async () => {
    await stopCaddy(caddy);
    gateways.forEach((gateway) => gateway.close());
    rmSync(directory, { recursive: true });
  });

  /** Which gateway answers. */
  const ask = (request: RequestInit = {}): Promise<string | null> =>
    fetch(`http://127.0.0.1:${edge}/v1/models`, request).then(
      async (answer) => (answer.ok ? await answer.text() : null),
      () => null,
    );

  test("a body that is malformed does not take the gateway from other clients", async () => {
    const client = connect(edge, "127.0.0.1");
    client.write(
      "POST /v1/models HTTP/1.1\r\nhost: 127.0.0.1\r\ntransfer-encoding: chunked\r\n\r\n-1\r\n",
    );
    const [answer] = (await once(client, "data")) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1.1 502 /);
    client.destroy();
    expect(await ask()).toBe("own");
  });

  test("calls reach a gateway although all answer their probes late", async () => {
    probesAreLate = true;
    await vi.waitUntil(() => late.size === gateways.length, 60_000);
    expect(await ask({ method: "POST", body: "{}" })).toBe("own");
    probesAreLate = false;
  });

  test("a gateway that is away is replaced by the other one", async () => {
    const [own] = gateways;
    own?.close();
    own?.closeAllConnections();
    expect(await ask()).toBe("other");
  });

  test("while no gateway and no notes store is running, the answers say so in the format of each", async () => {
    for (const gateway of gateways) {
      gateway.close();
      gateway.closeAllConnections();
    }
    await vi.waitFor(async () => {
      const answer = await fetch(`http://127.0.0.1:${edge}/v1/models`, {
        method: "POST",
        body: "{}",
      });
      // Until the probes fail, the edge still tries to connect.
      expect(answer.status).toBe(503);
      expect(await answer.json()).toMatchObject({
        error: {
          message: expect.stringContaining("No gateway responds."),
          code: "503",
        },
      });
    }, 60_000);
    const answer = await fetch(`http://127.0.0.1:${notes}/vault`);
    expect(answer.status).toBe(502);
    expect(await answer.json()).toEqual({
      error: "bad_gateway",
      reason: expect.stringContaining("The notes store cannot be reached."),
    });
  });
});

describe("notes on the other host", () => {
  let directory: string;
  let store: Server;
  let caddy: ChildProcess;
  let notes: number;
  const connections = new Set<unknown>();
  let answersOnce = true;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "hearth-edge-"));
    const { cert, key } = makeSelfSigned(new Date(Date.now() + DAY_MS), [
      "localhost",
    ]);
    const authority = join(directory, "ca.crt");
    writeFileSync(authority, cert);
    // As after a partition: what is sent on a connection from before never arrives.
    store = createTlsServer({ cert, key }, ({ socket }, response) => {
      if (answersOnce && connections.has(socket)) {
        return;
      }
      connections.add(socket);
      response.end("notes");
    });
    // As Caddy, which is there in place of this server.
    store.keepAliveTimeout = 300_000;
    const notesTls = await listen(store);
    notes = await freePort();
    const file = join(directory, "Caddyfile");
    writeFileSync(
      file,
      buildCaddyfile({
        peer: { address: "localhost", ports: { ...ports, notesTls } },
        hasNotes: false,
        https: { tls: "none" },
      })
        .replaceAll(authorityFile, authority)
        // Without the sites of the gateways.
        .replace(/http:\/\/:4000[\s\S]*?(?=http:\/\/:5984)/, "")
        .replace(`http://:${ports.notes} `, `http://127.0.0.1:${notes} `),
    );
    caddy = await startCaddy(directory, file);
    await vi.waitUntil(async () => (await ask()) === "notes", 60_000);
  });
  afterAll(async () => {
    await stopCaddy(caddy);
    store.close();
    store.closeAllConnections();
    rmSync(directory, { recursive: true });
  });

  const ask = (): Promise<string | null> =>
    fetch(`http://127.0.0.1:${notes}/`, {
      signal: AbortSignal.timeout(20_000),
    }).then(
      async (answer) => (answer.ok ? await answer.text() : null),
      () => null,
    );

  test("a connection that was not used for 10 s is not used again: it may be from before a partition", async () => {
    await setTimeout(11_000);
    expect(await ask()).toBe("notes");
  });

  test("requests that follow each other share a connection", async () => {
    answersOnce = false;
    await ask();
    const before = connections.size;
    await ask();
    await ask();
    expect(connections.size).toBe(before);
  });
});
