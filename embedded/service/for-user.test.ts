import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { temporaryHome } from "../../test/supervisor/temporary-home.ts";
import { planForUser, prepareAsUser } from "./for-user.ts";
import { findServiceUser } from "./service-user.ts";
import { checkOnlyTrustedWrite } from "./trusted-files.ts";

const own = process.getuid?.() ?? 0;
const asRoot = test.runIf(own === 0);
let place: ReturnType<typeof temporaryHome>;
let checkout: string;
let file: string;

beforeEach(() => {
  place = temporaryHome();
  checkout = join(place.directory, "checkout");
  mkdirSync(join(checkout, "bin"), { recursive: true });
  file = join(checkout, "bin", "hearth.js");
  writeFileSync(file, "");
  symlinkSync("hearth.js", join(checkout, "bin", "link"));
  for (const path of [checkout, join(checkout, "bin")]) {
    chmodSync(path, 0o755);
  }
  chmodSync(file, 0o644);
});
afterEach(() => place.remove());

const trusted = { users: new Set([own, 0]), groups: new Set<number>() };

test("a checkout that only its owner and root can write to is accepted", () => {
  checkOnlyTrustedWrite(checkout, trusted);
});

test.each([
  ["a file that all may write", () => chmodSync(file, 0o646)],
  ["a file that its group may write", () => chmodSync(file, 0o664)],
  ["a directory that all may write", () => chmodSync(checkout, 0o757)],
  [
    "a parent directory that all may write",
    () => chmodSync(place.directory, 0o777),
  ],
])("%s is rejected", (_what, change) => {
  change();
  expect(() => checkOnlyTrustedWrite(checkout, trusted)).toThrow(
    /^other users can change .*chmod -R go-w/,
  );
});

test("files that are deleted meanwhile are accepted", async () => {
  const building = spawn(
    process.execPath,
    [
      "-e",
      `const { mkdirSync, rmSync } = require("fs");
       for (;;) {
         mkdirSync(process.argv[1] + "/image/app", { recursive: true });
         rmSync(process.argv[1] + "/image", { recursive: true });
       }`,
      checkout,
    ],
    { stdio: "ignore" },
  );
  try {
    const image = join(checkout, "image");
    await expect.poll(() => existsSync(image), { interval: 1 }).toBe(true);
    for (let round = 0; round < 2_000; round += 1) {
      checkOnlyTrustedWrite(checkout, trusted);
    }
  } finally {
    building.kill("SIGKILL");
    await once(building, "exit");
  }
});

asRoot("another user's file is rejected, a user's private group is not", () => {
  chmodSync(file, 0o664);
  chownSync(file, 0, 4242);
  checkOnlyTrustedWrite(checkout, { ...trusted, groups: new Set([4242]) });
  chownSync(file, 4242, 0);
  expect(() => checkOnlyTrustedWrite(checkout, trusted)).toThrow(file);
});

asRoot("under sudo a checkout that others can write to is not run", () => {
  const user = findServiceUser("daemon", {});
  const plan = planForUser(user, checkout, { HEARTH_HOME: place.home.root });
  const ran = join(place.directory, "ran");
  writeFileSync(
    file,
    `require("fs").writeFileSync(${JSON.stringify(ran)}, "")`,
  );
  chmodSync(file, 0o666);
  expect(() =>
    prepareAsUser(user, plan, checkout, join(place.directory, "no.service")),
  ).toThrow(`other users can change ${file}`);
  expect(existsSync(ran)).toBe(false);
});

asRoot(
  "a service that ran as root is not replaced by one that starts empty",
  () => {
    const user = findServiceUser("daemon", {});
    const plan = planForUser(user, checkout, {});
    const unit = join(place.directory, "hearth.service");
    writeFileSync(unit, 'Environment="HEARTH_HOME=/root/100%% data"\n');
    expect(() => prepareAsUser(user, plan, checkout, unit)).toThrow(
      "has its data in /root/100% data",
    );
  },
);

test("the user is sudo's caller or the named one, and never root", () => {
  expect(findServiceUser(undefined, { SUDO_USER: "daemon" })).toMatchObject({
    name: "daemon",
    home: expect.stringMatching(/^\//),
  });
  expect(findServiceUser("nobody", { SUDO_USER: "daemon" }).name).toBe(
    "nobody",
  );
  for (const env of [{}, { SUDO_USER: "root" }]) {
    expect(() => findServiceUser(undefined, env)).toThrow(
      "the service does not run as root",
    );
  }
  for (const name of ["hearth-nowhere", "x;touch /tmp/x", "-u"]) {
    expect(() => findServiceUser(name, {})).toThrow("not found: create it");
  }
});

test("a user's service keeps its data in that user's home, not in root's", () => {
  const user = { name: "anna", uid: 1000, gid: 1000, home: "/home/anna" };
  const roots = planForUser(user, checkout, { HEARTH_HOME: undefined });
  expect(roots.home).toMatch(/^\/home\/anna\/.*hearth$/i);
  expect(roots.node).toBe(
    `${roots.home}/releases/current/node_modules/node/bin/node`,
  );
  const named = planForUser(user, checkout, { HEARTH_HOME: "/srv/hearth" });
  expect(named).toMatchObject({ home: "/srv/hearth", user: "anna" });
});
