import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { listen } from "../servers/ports.ts";
import { admin, ask, spawnNotes, startNotes, testIni } from "./start-notes.ts";

describe("a failed start is explained in one sentence", () => {
  let directory: string;
  let ini: string;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "hearth-notes-"));
    ini = join(directory, "hearth.ini");
    writeFileSync(ini, testIni());
  });

  afterEach(() => {
    rmSync(directory, { recursive: true, force: true });
  });

  const failedStart = async (
    args: readonly string[],
    environment: Readonly<Record<string, string>> = {
      NOTES_DIR: join(directory, "data"),
    },
  ): Promise<string> => {
    const child = spawnNotes(args, environment);
    let output = "";
    child.stderr!.on("data", (text: Buffer) => {
      output += text.toString();
    });
    const [code] = (await once(child, "close")) as [number];
    expect(code).toBe(1);
    expect(output.trim().split("\n")).toHaveLength(1);
    return output;
  };

  test("port in use", async () => {
    const other = createServer();
    const port = await listen(other);
    try {
      expect(
        await failedStart(["--ini", ini, "--port", String(port)]),
      ).toContain(`port ${port} on 127.0.0.1 is already in use`);
    } finally {
      other.close();
    }
  });

  test("an invalid ini, with its line but not its text", async () => {
    writeFileSync(ini, "[admins]\nnot-a-secret-but-private\n");
    const output = await failedStart(["--ini", ini]);
    expect(output).toContain(
      "is invalid: line 2 is neither a [section] nor a key = value",
    );
    expect(output).not.toContain("private");
  });

  test("a plain password in the ini", async () => {
    writeFileSync(ini, "[admins]\nadmin=not-a-secret-plain\n");
    const output = await failedStart(["--ini", ini]);
    expect(output).toContain("has no valid password hash");
    expect(output).not.toContain("not-a-secret-plain");
  });

  test("no admin", async () => {
    writeFileSync(ini, "[couchdb]\nuuid=1\n");
    expect(await failedStart(["--ini", ini])).toContain("has no server admin");
  });

  test("no ini", async () => {
    expect(await failedStart([])).toContain("--ini FILE is required");
    expect(await failedStart(["--ini", join(directory, "none")])).toContain(
      "not found",
    );
  });

  test("no data directory", async () => {
    expect(await failedStart(["--ini", ini], {})).toContain(
      "NOTES_DIR is required",
    );
    expect(await failedStart(["--ini", ini], { NOTES_DIR: ini })).toContain(
      "is not a directory",
    );
  });

  test("an invalid port", async () => {
    expect(await failedStart(["--ini", ini, "--port", "70000"])).toContain(
      "must be a number from 0 to 65535",
    );
  });

  test("a data directory that another store is using", async () => {
    const notes = await startNotes();
    try {
      const output = await failedStart(["--ini", ini, "--port", "0"], {
        NOTES_DIR: join(notes.directory, "data"),
      });
      expect(output).toContain("another notes store is already using");
    } finally {
      await notes.stop();
    }
  });
});

test("SIGTERM completes open feeds and ends the process with 0; the data is available after a restart", async () => {
  const notes = await startNotes();
  try {
    await ask(`${notes.url}/vault`, { method: "PUT" });
    const feed = ask(
      `${notes.url}/vault/_changes?feed=longpoll&since=now&heartbeat=1000`,
    );
    await ask(`${notes.url}/vault/_local/a`, { method: "PUT", json: { n: 1 } });
    const waiting = await feed;
    const ended = waiting.json();
    expect(await notes.kill("SIGTERM")).toBe(0);
    expect(await ended).toMatchObject({ results: [], pending: 0 });
    const again = await notes.restart();
    try {
      const local = await ask(`${again.url}/vault/_local/a`);
      expect(await local.json()).toMatchObject({ n: 1, _rev: "0-1" });
    } finally {
      await again.kill("SIGKILL");
    }
  } finally {
    await notes.stop();
  }
});

test("behind proxies, the last address in the header is locked out, as in CouchDB", async () => {
  const notes = await startNotes(testIni({ trusted_proxies: "127.0.0.1" }));
  try {
    const from = (
      addresses: string,
      user?: { name: string; password: string },
    ) =>
      ask(notes.url, {
        headers: { "x-forwarded-for": addresses },
        ...(user === undefined ? {} : { user }),
      });
    const wrong = { name: "admin", password: "not-a-secret-wrong" };
    for (let count = 0; count < 6; count += 1) {
      await from("203.0.113.7, 203.0.113.1", wrong);
    }
    expect((await from("203.0.113.7")).status).toBe(200);
    expect((await from("203.0.113.1")).status).toBe(403);
    expect((await from("203.0.113.7, 203.0.113.1")).status).toBe(403);
  } finally {
    await notes.stop();
  }
});

test("guesses from one /64 of IPv6 count as one client's", async () => {
  const notes = await startNotes(testIni({ trusted_proxies: "127.0.0.1" }));
  try {
    const statusFrom = async (address: string, password: string) =>
      (
        await ask(notes.url, {
          user: { name: admin.name, password },
          headers: { "x-forwarded-for": address },
        })
      ).status;
    for (let guess = 0; guess < 5; guess += 1) {
      expect(await statusFrom(`2001:db8:1:2::${guess}`, "wrong")).toBe(401);
    }
    expect(await statusFrom("2001:db8:1:2:ffff::9", admin.password)).toBe(403);
    expect(await statusFrom("2001:db8:1:3::1", admin.password)).toBe(200);
  } finally {
    await notes.stop();
  }
});

test("the log contains no password, whether right, wrong or newly set", async () => {
  const notes = await startNotes(testIni({ trusted_proxies: "127.0.0.1" }));
  try {
    const wrong = { name: "admin", password: "not-a-secret-wrong" };
    for (let count = 0; count < 6; count += 1) {
      await ask(notes.url, { user: wrong });
    }
    const elsewhere = { "x-forwarded-for": "203.0.113.9" };
    const saved = await ask(`${notes.url}/_users/org.couchdb.user:ann`, {
      method: "PUT",
      json: {
        name: "ann",
        password: "not-a-secret-ann",
        roles: [],
        type: "user",
      },
      headers: elsewhere,
    });
    expect(saved.status).toBe(201);
    const set = await ask(`${notes.url}/_node/_local/_config/admins/second`, {
      method: "PUT",
      json: "not-a-secret-second",
      headers: elsewhere,
    });
    expect(set.status).toBe(200);
    expect(notes.log.join("\n")).toContain("locked out");
    expect(notes.log.join("\n")).not.toContain("not-a-secret");
    // A new admin can log in at once, and after a restart with the stored hash.
    const second = { name: "second", password: "not-a-secret-second" };
    expect((await ask(notes.url, { user: second })).status).toBe(200);
    const again = await notes.restart();
    expect((await ask(again.url, { user: second })).status).toBe(200);
    await again.kill("SIGKILL");
  } finally {
    await notes.stop();
  }
});

test("the error for an unsupported CouchDB route names it", async () => {
  const notes = await startNotes();
  try {
    for (const name of ["_global_changes", "_scheduler"]) {
      const answer = await ask(`${notes.url}/${name}`);
      expect(answer.status).toBe(501);
      expect(await answer.json()).toEqual({
        error: "not_implemented",
        reason: `This notes store does not implement ${name}.`,
      });
    }
  } finally {
    await notes.stop();
  }
});
