import {
  existsSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  serversUnderTest,
  type RunningServer,
  type ServerUnderTest,
} from "../../test/contract/server-under-test.ts";
import { ask } from "../../test/contract/start-notes.ts";
import {
  runHearth,
  type CommandResult,
} from "../../test/supervisor/hearth-command.ts";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { waitFor } from "../../test/wait-for.ts";
import { startWatcher, type Watcher } from "../../embedded/watcher.ts";
import { openSetupUri } from "./setup-uri.ts";

const [embedded] = serversUnderTest() as [ServerUnderTest];
const OPERATOR_PASSWORD = "operator-password-of-the-test";

let place: ReturnType<typeof temporaryHome>;
let server: RunningServer;
let watcher: Watcher;
const notices: string[] = [];

/** As on a separate host: the store runs elsewhere, the configuration has no checks. */
function start(more: Readonly<Record<string, string>> = {}): Promise<Watcher> {
  const config = join(place.directory, "supervisor.yaml");
  writeFileSync(
    config,
    "notes:\n  public_url: https://notes.example.org\nchecks: []\n",
  );
  return startWatcher({
    home: place.home,
    env: {
      HEARTH_SUPERVISOR_CONFIG: config,
      HEARTH_SUPERVISOR_PORT: "0",
      HEARTH_OPERATOR_PASSWORD: OPERATOR_PASSWORD,
      HEARTH_JOBS: "on",
      NOTES_URL: server.url,
      NOTES_ADMIN_PASSWORD: server.admin.password,
      ...more,
    },
    runtime: "none",
    onNotice: (sentence) => notices.push(sentence),
    onService: () => {},
    onCheck: () => {},
  });
}

/** The CLI, as an operator runs it. */
async function hearth(
  words: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<CommandResult> {
  return runHearth(words, {
    HEARTH_HOME: place.home.root,
    HEARTH_URL: watcher.address,
    HEARTH_OPERATOR_PASSWORD: OPERATOR_PASSWORD,
    ...more,
  });
}

async function asJson(...words: readonly string[]): Promise<unknown> {
  const { out, error } = await hearth([...words, "--json"]);
  expect(error).not.toContain("hearth:");
  return JSON.parse(out);
}

beforeAll(async () => {
  place = temporaryHome();
  server = await embedded.start();
  watcher = await start();
});
afterAll(async () => {
  await watcher.stop();
  await server.stop();
  place.remove();
});

const file = (vault: string) =>
  join(place.home.root, "vaults", `${vault}.json`);

test("only the first start creates the vault notes", async () => {
  await waitFor("the first vault", () => existsSync(file("notes")));
  expect(statSync(file("notes")).mode & 0o777).toBe(0o600);
  const vaults = () => asJson("notes", "list");
  await waitFor("it to be open", async () =>
    JSON.stringify(await vaults()).includes('"open"'),
  );
  expect(await vaults()).toMatchObject([
    { vault: "notes", url: "https://notes.example.org", user: "notes" },
  ]);
  const stateFile = join(place.home.root, "notes-state.json");
  const state = () => readFileSync(stateFile, "utf8");
  const credentials = readFileSync(file("notes"), "utf8");
  await watcher.stop();
  rmSync(stateFile);
  watcher = await start();
  await waitFor(
    "the lost state",
    () => existsSync(stateFile) && state().includes('"firstVaultMade":true'),
  );
  expect(state()).toContain('"member":"notes"');
  expect(readFileSync(file("notes"), "utf8")).toBe(credentials);
  expect((await hearth(["notes", "remove", "notes"])).code).toBe(2);
  expect((await hearth(["notes", "remove", "notes", "--yes"])).code).toBe(0);
  await watcher.stop();
  watcher = await start();
  expect(state()).toContain('"firstVaultMade":true');
  expect(await vaults()).toEqual([]);
});

test("add prints a valid Setup URI, its passphrase and a QR code", async () => {
  const picture = join(place.directory, "setup.png");
  const { code, out } = await hearth([
    "notes",
    "add",
    "family",
    "--mode",
    "on-save",
    "--newer-file",
    "--exclude",
    "^private/",
    "--qr",
    picture,
  ]);
  expect(code).toBe(0);
  const uri = /^obsidian:\S+$/m.exec(out)?.[0] ?? "";
  const passphrase = /Setup passphrase +(\S+)/.exec(out)?.[1] ?? "";
  expect(await openSetupUri(uri, passphrase)).toMatchObject({
    couchDB_URI: "https://notes.example.org",
    couchDB_DBNAME: "family",
    syncOnSave: true,
    resolveConflictsByNewerFile: true,
    syncIgnoreRegEx: "^private/",
  });
  expect(readFileSync(picture).subarray(1, 4).toString()).toBe("PNG");
  expect(statSync(picture).mode & 0o777).toBe(0o600);
  // The URI contains the only password in the output.
  const { password } = JSON.parse(readFileSync(file("family"), "utf8")) as {
    readonly password: string;
  };
  expect(out).not.toContain(password);
}, 30_000);

test("a QR code that cannot be written is reported before a vault is created, or after its Setup URI", async () => {
  expect(await hearth(["notes", "add", "other", "--qr", "x.gif"])).toEqual({
    code: 2,
    out: "",
    error:
      'hearth: --qr must be a file name ending in .png or .svg, not "x.gif".\n',
  });
  expect(await asJson("notes", "list")).toMatchObject([{ vault: "family" }]);
  const picture = join(place.directory, "missing", "x.png");
  const rotated = await hearth(["notes", "rotate", "family", "--qr", picture]);
  expect(rotated).toMatchObject({
    code: 1,
    out: expect.stringMatching(/^obsidian:\S+$/m) as unknown,
    error: expect.stringContaining(`cannot write ${picture}`) as unknown,
  });
}, 30_000);

test("a vault rebuilt by an admin admits its member again without waiting for the next inspection", async () => {
  const { user, password } = JSON.parse(
    readFileSync(file("family"), "utf8"),
  ) as { readonly user: string; readonly password: string };
  const statusOfMember = async () =>
    (await ask(`${server.url}/family`, { user: { name: user, password } }))
      .status;
  await ask(`${server.url}/family`, { method: "DELETE" });
  await ask(`${server.url}/family`, { method: "PUT" });
  await waitFor(
    "the member to get access",
    async () => (await statusOfMember()) === 200,
  );
});

test("--json contains everything that another program needs", async () => {
  const answer = await asJson("notes", "setup-uri", "family");
  expect(Object.keys(answer as object)).toEqual(
    expect.arrayContaining([
      "vault",
      "url",
      "user",
      "password",
      "setupUri",
      "setupPassphrase",
      "vaultPassphrase",
    ]),
  );
}, 30_000);

test("a command that cannot read secrets.json needs the operator password", async () => {
  const elsewhere = { HEARTH_HOME: join(place.directory, "elsewhere") };
  const words = ["notes", "setup-uri", "family"];
  for (const [password, sentence] of [
    ["", "requires the operator password: set HEARTH_OPERATOR_PASSWORD"],
    ["another-password", "denied the operator password"],
  ] as const) {
    const env = { ...elsewhere, HEARTH_OPERATOR_PASSWORD: password };
    const { code, out, error } = await hearth(words, env);
    expect([code, out]).toEqual([1, ""]);
    expect(error).toContain(sentence);
  }
  expect((await hearth(words, elsewhere)).code).toBe(0);
  const own = { HEARTH_OPERATOR_PASSWORD: "", HEARTH_URL: "" };
  expect((await hearth(words, own)).code).toBe(0);
}, 30_000);

test("backup, restore under another name, conflicts, devices", async () => {
  expect((await hearth(["notes", "backup"])).out).toContain("done after");
  const listed = (await asJson("notes", "backup", "--list")) as {
    readonly backups: readonly string[];
  };
  expect(listed.backups).toHaveLength(1);
  const restored = await hearth([
    "notes",
    "restore",
    listed.backups[0] ?? "",
    "--vault",
    "family",
    "--as",
    "family-before",
  ]);
  expect(restored.out).toContain("vault family-before with 0 documents");
  expect(await asJson("notes", "conflicts", "family")).toEqual({
    vault: "family",
    conflicts: [],
    more: false,
  });
  expect((await hearth(["notes", "devices", "family"])).out).toContain(
    "No device has synced vault family yet",
  );
});

test("an incompletely restored vault is dropped at the next start and reported", async () => {
  const half = `${server.url}/half`;
  await ask(half, { method: "PUT" });
  await ask(`${half}/_security`, {
    method: "PUT",
    json: { hearth_restoring: true },
  });
  await watcher.stop();
  watcher = await start();
  await waitFor("the word", () =>
    notices.some((notice) => notice.includes("restore of vault half")),
  );
  expect((await ask(half)).status).toBe(404);
}, 30_000);

describe("invalid input is reported in one sentence", () => {
  test.each([
    [["add", "Bad Name"], 2, "is not a valid vault name"],
    [["add", "x", "--mode", "often"], 2, "--mode must be live or on-save."],
    [
      ["add", "x", "--exclude", "("],
      2,
      "--exclude must be a regular expression.",
    ],
    [
      ["add", "x", "--url", "example.org"],
      2,
      "is not a valid address for devices",
    ],
    [["devices", "nowhere"], 2, 'vault "nowhere" not found. Run'],
    [["setup-uri", "familly"], 2, '(did you mean "family"?). Run `hearth'],
    [["devices", "familly"], 2, '(did you mean "family"?). Run `hearth'],
    [["rotate", "familly"], 2, '(did you mean "family"?). Run `hearth'],
    [["resolve", "family", "a.md"], 2, "choose the version to keep"],
    [["restore", "yesterday"], 2, 'backup "yesterday" not found'],
    [["restore-seed", "family"], 1, "no copy of a security seed"],
    [
      ["setup-uri", "family", "--qr", "x.gif"],
      2,
      "must be a file name ending in .png or .svg",
    ],
  ])(
    "hearth notes %j",
    async (words, code, sentence) => {
      const seen = await hearth(["notes", ...words]);
      expect(seen.out + seen.error).toContain(sentence);
      expect(seen.code).toBe(code);
    },
    30_000,
  );
});

test("the other host's supervisor reports which one manages the notes", async () => {
  await watcher.stop();
  watcher = await start({
    HEARTH_JOBS: "off",
    HEARTH_PEER_URL: "http://10.0.0.1:4080",
  });
  const { code, error } = await hearth(["notes", "list"]);
  expect(code).toBe(1);
  expect(error).toContain("such as http://10.0.0.1:4080.");
}, 30_000);
