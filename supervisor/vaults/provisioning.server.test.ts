import { readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newDevice, remote } from "../../test/contract/devices.ts";
import { serversUnderTest } from "../../test/contract/server-under-test.ts";
import { ask } from "../../test/contract/start-notes.ts";
import {
  openNotesTestbed,
  type NotesTestbed,
} from "../../test/supervisor/notes-testbed.ts";
import { Database } from "./database.ts";
import { SEED_ID } from "./livesync.ts";
import { vaultChoices } from "./plugin-settings.ts";
import { Provisioning } from "./provisioning.ts";
import { openSetupUri } from "./setup-uri.ts";

const choices = vaultChoices.parse({});

describe.each(serversUnderTest())("on $name", (under) => {
  let testbed: NotesTestbed;
  beforeAll(async () => {
    testbed = await openNotesTestbed(under);
  });
  afterAll(() => testbed.close());

  test("a vault's Setup URI grants sync and no other rights", async () => {
    const made = await testbed.provisioning.add({
      vault: "vault-one",
      choices,
    });
    const settings = await openSetupUri(made.setupUri, made.setupPassphrase);
    expect(settings).toMatchObject({
      couchDB_URI: testbed.server.url,
      couchDB_DBNAME: "vault-one",
      passphrase: made.vaultPassphrase,
    });
    const member = {
      name: String(settings["couchDB_USER"]),
      password: String(settings["couchDB_PASSWORD"]),
    };
    expect(member.password).not.toBe(testbed.server.admin.password);
    expect(member.password).toMatch(/^[\w-]{32}$/);

    const [one, other] = [newDevice(), newDevice()];
    const there = remote(testbed.server.url, "vault-one", member);
    await one.put({ _id: "hello.md", text: "hello" });
    await one.replicate.to(there);
    await other.replicate.from(there);
    expect(await other.get("hello.md")).toMatchObject({ text: "hello" });

    const base = `${testbed.server.url}/vault-one`;
    const as = (path: string, method: string) =>
      ask(base + path, { method, user: member, json: {} });
    expect((await as("/_compact", "POST")).status).toBe(401);
    expect((await as("", "DELETE")).status).toBe(401);
    expect((await as("/_security", "PUT")).status).toBeGreaterThan(400);
    expect(
      (
        await ask(`${testbed.server.url}/vault-other`, {
          method: "PUT",
          user: member,
        })
      ).status,
    ).toBe(401);
  });

  test("the credentials file is readable only by its owner", async () => {
    const path = testbed.files.pathOf("vault-one");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const { host } = new URL(testbed.server.url);
    expect(testbed.files.read("vault-one")).toMatchObject({
      vault: "vault-one",
      user: "vault-one",
      connection: expect.stringMatching(
        new RegExp(`^http://vault-one:[\\w-]{32}@${host}/vault-one$`),
      ) as string,
      vaultPassphrase: expect.stringMatching(
        /^([a-z2-9]{5}-){4}[a-z2-9]{5}$/,
      ) as string,
    });
  });

  test("a new Setup URI has the same settings, with another address on request", async () => {
    const again = await testbed.provisioning.setupUri({
      vault: "vault-one",
      url: "https://Notes.Example.org/",
      choices: { mode: "on-save" },
    });
    const settings = await openSetupUri(again.setupUri, again.setupPassphrase);
    expect(settings).toMatchObject({
      couchDB_URI: "https://notes.example.org",
      couchDB_PASSWORD: testbed.files.read("vault-one")?.password,
      syncOnSave: true,
    });
    expect(again.advice).toEqual([]);
    expect(testbed.files.read("vault-one")?.url).toBe(testbed.server.url);
    await testbed.provisioning.setupUri({
      vault: "vault-one",
      url: "https://notes.example.org",
      keep: true,
    });
    expect(testbed.files.read("vault-one")).toMatchObject({
      url: "https://notes.example.org",
      connection: expect.stringContaining(
        "@notes.example.org/vault-one",
      ) as string,
    });
  });

  test("after a rotation only the new password is accepted", async () => {
    const before = testbed.files.read("vault-one");
    const made = await testbed.provisioning.rotate({ vault: "vault-one" });
    const statusWith = async (password: string) =>
      (
        await ask(`${testbed.server.url}/vault-one`, {
          user: { name: made.user, password },
        })
      ).status;
    expect(await statusWith(made.password)).toBe(200);
    expect(await statusWith(before?.password ?? "")).toBe(401);
    expect(made.vaultPassphrase).toBe(before?.vaultPassphrase);
    expect(testbed.files.read("vault-one")?.password).toBe(made.password);
  });

  test.each(["before", "after"] as const)(
    "a rotation interrupted %s the store has accepted the password continues with the same one",
    async (moment) => {
      const vault = `vault-broken-${moment}`;
      const made = await testbed.provisioning.add({ vault, choices });
      const cut = new Provisioning({
        ...testbed,
        address: () => testbed.server.url,
        couch: {
          ...testbed.couch,
          ask: async (method, path, options) => {
            const isUser = method === "PUT" && path.startsWith("/_users/");
            if (isUser && moment === "before") {
              throw new Error("cut off");
            }
            const answer = await testbed.couch.ask(method, path, options);
            if (isUser) {
              throw new Error("cut off");
            }
            return answer;
          },
        },
      });
      const statusWith = async (password = "") => {
        const user = { name: made.user, password };
        return (await ask(`${testbed.server.url}/${vault}`, { user })).status;
      };
      await expect(cut.rotate({ vault })).rejects.toThrow("cut off");
      const kept = testbed.files.read(vault);
      expect(kept?.password).toBe(made.password);
      expect(
        await statusWith(
          moment === "before" ? kept?.password : kept?.nextPassword,
        ),
      ).toBe(200);
      await expect(testbed.provisioning.setupUri({ vault })).rejects.toThrow(
        `\`hearth notes rotate ${vault}\` to finish it`,
      );
      const rotated = await testbed.provisioning.rotate({ vault });
      expect(rotated.password).toBe(kept?.nextPassword);
      expect(await statusWith(rotated.password)).toBe(200);
      const file = testbed.files.read(vault);
      expect(file?.password).toBe(rotated.password);
      expect(file?.nextPassword).toBeUndefined();
      expect(file?.connection).toContain(rotated.password);
    },
  );

  test("a passphrase that must not be stored is required for a new URI", async () => {
    const made = await testbed.provisioning.add({
      vault: "vault-forgetful",
      choices,
      forgetPassphrase: true,
    });
    expect(testbed.files.read("vault-forgetful")?.vaultPassphrase).toBeNull();
    await expect(
      testbed.provisioning.setupUri({ vault: "vault-forgetful" }),
    ).rejects.toThrow("set HEARTH_VAULT_PASSPHRASE");
    const again = await testbed.provisioning.setupUri({
      vault: "vault-forgetful",
      vaultPassphrase: made.vaultPassphrase ?? "",
    });
    expect(
      await openSetupUri(again.setupUri, again.setupPassphrase),
    ).toMatchObject({ passphrase: made.vaultPassphrase });
  });

  test.each([
    ["Notes", "must be a lower-case letter"],
    ["9notes", "must be a lower-case letter"],
    ["my notes", "must be a lower-case letter"],
    ["../etc", "must be a lower-case letter"],
    ["hearth_drill_1", "are reserved for restore drills"],
  ])("%s is no vault's name: %s", async (vault, message) => {
    await expect(testbed.provisioning.add({ vault, choices })).rejects.toThrow(
      message,
    );
  });

  test("an existing vault or database of the name is rejected", async () => {
    await expect(
      testbed.provisioning.add({ vault: "vault-one", choices }),
    ).rejects.toThrow('vault "vault-one" already exists');
    await new Database(testbed.couch, "vault-foreign").create();
    await expect(
      testbed.provisioning.add({ vault: "vault-foreign", choices }),
    ).rejects.toThrow('vault "vault-foreign" already exists');
  });

  test("an interrupted attempt is continued by the next one, with the same credentials", async () => {
    const vault = "vault-late";
    const made = await testbed.provisioning.add({
      vault,
      url: "https://notes.example.org",
      choices: vaultChoices.parse({ exclude: ["^private/"] }),
    });
    const before = testbed.files.read(vault);
    // The state left by a supervisor that is killed before its last step, or on a machine to which only the file was copied.
    testbed.state.forget(vault);
    await new Database(testbed.couch, vault).drop();
    await testbed.provisioning.add({ vault });
    expect(testbed.files.read(vault)).toEqual(before);
    const answer = await ask(`${testbed.server.url}/${vault}`, {
      user: { name: made.user, password: made.password },
    });
    expect(answer.status).toBe(200);
  });

  test("a vault whose state was lost keeps its credentials, and is watched again", async () => {
    const vault = "vault-stateless";
    await testbed.provisioning.add({ vault, choices });
    const before = testbed.files.read(vault);
    const database = new Database(testbed.couch, vault);
    await database.put("note", { type: "plain" });
    testbed.state.forget(vault);
    await expect(testbed.provisioning.add({ vault, choices })).rejects.toThrow(
      "already exists",
    );
    expect(testbed.files.read(vault)).toEqual(before);
    await testbed.provisioning.recordMembers();
    expect(testbed.state.vault(vault).member).toBe(vault);
  });

  test("a passphrase in the file of a lost vault is kept when the vault is added without encryption", async () => {
    const vault = "vault-open";
    const { vaultPassphrase } = await testbed.provisioning.add({
      vault,
      choices,
    });
    testbed.state.forget(vault);
    await new Database(testbed.couch, vault).drop();
    await testbed.provisioning.add({
      vault,
      choices: vaultChoices.parse({ e2ee: false }),
    });
    expect(testbed.files.read(vault)?.vaultPassphrase).toBeNull();
    expect(testbed.files.removed(vault)).toMatchObject([{ vaultPassphrase }]);
  });

  test("a vault with damaged credentials is removed even if its database is lost; the damaged file is kept", async () => {
    const vault = "vault-damaged-credentials";
    await testbed.provisioning.add({ vault, choices });
    const damaged = '{"vaultPassphrase": "still readable here';
    writeFileSync(testbed.files.pathOf(vault), damaged);
    await new Database(testbed.couch, vault).drop();
    const { stays } = await testbed.provisioning.remove(vault);
    const [, path = ""] =
      /credentials are damaged and remain in (.*): they/.exec(
        stays.join(" "),
      ) ?? [];
    expect(readFileSync(path, "utf8")).toBe(damaged);
    await expect(testbed.provisioning.remove(vault)).rejects.toThrow(
      `"${vault}"`,
    );
  });

  test("a vault whose seed copy is damaged is not removed, not even partly", async () => {
    const { user, password } = testbed.files.read("vault-late")!;
    const copy = testbed.escrow.pathOf("vault-late");
    testbed.escrow.write(testbed.escrow.read("vault-late"));
    writeFileSync(copy, "{");
    await expect(testbed.provisioning.remove("vault-late")).rejects.toThrow(
      `${copy} is damaged`,
    );
    rmSync(copy);
    const answer = await ask(`${testbed.server.url}/vault-late`, {
      user: { name: user, password },
    });
    expect(answer.status).toBe(200);
  });

  test("removing a vault reports what remains, and keeps its seed and its passphrase", async () => {
    await new Database(testbed.couch, "vault-late").put(SEED_ID, {
      type: "sync-parameters",
      pbkdf2salt: "late",
    });
    await testbed.inspector.inspectAll();
    const passphrase = testbed.files.read("vault-late")?.vaultPassphrase;
    expect(passphrase).toEqual(expect.any(String));
    const { stays } = await testbed.provisioning.remove("vault-late");
    expect(stays[0]).toContain("no backup on this machine contains the vault");
    expect(testbed.escrow.read("vault-late").accepted).toBe("late");
    expect(stays.join(" ")).toContain(testbed.escrow.pathOf("vault-late"));
    expect(testbed.files.read("vault-late")).toBeUndefined();
    const [, kept = ""] =
      /credentials remain in (\S+\.json)/.exec(stays.join(" ")) ?? [];
    expect(JSON.parse(readFileSync(kept, "utf8"))).toMatchObject({
      vaultPassphrase: passphrase,
    });
    expect(
      await new Database(testbed.couch, "vault-late").info(),
    ).toBeUndefined();
    await expect(testbed.provisioning.remove("vault-late")).rejects.toThrow(
      'vault "vault-late" not found',
    );
  });
});
