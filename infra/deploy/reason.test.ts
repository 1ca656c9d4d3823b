import { expect, test } from "vitest";
import { reasonOf } from "./reason.ts";

const ended = (stdout: string, stderr: string) =>
  new Error(
    `code: 255\n stdout: ${stdout}\n stderr: ${stderr}\n err?: Error: Command failed with exit code 255\n`,
  );

test.each([
  [
    ended("", "Downloading pulumi…\npulumi: fetch failed"),
    "pulumi: fetch failed",
  ],
  [
    ended("Updating (home):", "error: update failed\nerror: no such network"),
    "no such network",
  ],
  [ended("Updating (home):\n    error: no such image\n", ""), "no such image"],
  [
    ended(
      "Updating (home):\n    error: Cannot update container a20e: runc did not terminate successfully: unable to set memory limit to 67108864 (current usage: 121028608)\n",
      "",
    ),
    "Cannot update container a20e: runc did not terminate successfully: unable to set memory limit to 67108864 (current usage: 121028608): its programs use more than the new limit: raise it in hearth:memory, then run the same command again.",
  ],
  [
    ended(
      "",
      "\nerror: failed to load checkpoint: place 1: unexpected end of JSON input\n",
    ),
    'failed to load checkpoint: place 1: unexpected end of JSON input: the state cannot be read, such as after a power failure. The file .pulumi/stacks/hearth/STACK.json of the state (`npx pulumi whoami --verbose` shows where) has its previous version next to it, with the ending .bak: copy that over it, then run `npm run deploy -- cancel` and the same command again (docs/deploy.md, "Destroy, and a lost state").',
  ],
  [
    ended("", "\nerror: incorrect passphrase\n"),
    "incorrect passphrase: set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE to that of `npm run init`.",
  ],
  [
    ended(
      "",
      "\nerror: invalid YAML file: yaml: line 188: did not find expected key\n",
    ),
    "invalid YAML file: yaml: line 188: did not find expected key: fix the stack's configuration, Pulumi.STACK.yaml.",
  ],
  [
    ended(
      "Updating (home):\n    error: 1 error occurred:\n    \t* container failed to be in healthy state\n    \n  pulumi:pulumi:Stack (hearth-home):\n    error: update failed\n",
      "",
    ),
    "container failed to be in healthy state",
  ],
  [
    ended(
      "Updating (home):\n    error: 2 errors occurred:\n    \t* no such image\n    \t* no such network\n",
      "",
    ),
    "no such image\n  no such network",
  ],
  [
    ended(
      "Updating (grown):\n    error: execution error at (hearth/templates/checks.yaml:2:4): invalid values, nothing was changed:\n    - drainNotice is 1s.\n    - redis.mode is none.\n\nResources:\n    + 1 created",
      "",
    ),
    "invalid values, nothing was changed:\n  drainNotice is 1s.\n  redis.mode is none.",
  ],
  [
    ended(
      "Diagnostics:\n    error: 2 mistakes in the stack's configuration; nothing was changed:\n      hearth:postgresVersion is 17.\n      hearth:prefix is empty.\n    error: 2 mistakes in the stack's configuration; nothing was changed:\n\nResources:\n    1 errored",
      "",
    ),
    "2 mistakes in the stack's configuration; nothing was changed:\n  hearth:postgresVersion is 17.\n  hearth:prefix is empty.",
  ],
  [
    ended(
      'Refreshing (home):\n    error: error connecting to PostgreSQL server 10.8.0.1 (scheme: postgres): password authentication failed for user "postgres"\n',
      "",
    ),
    'error connecting to PostgreSQL server 10.8.0.1 (scheme: postgres): password authentication failed for user "postgres": hearth:postgresPassword is not the server\'s; `npm run deploy -- rotate postgres` gives both another one.',
  ],
  [
    ended(
      "",
      "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the lock file with `pulumi cancel`.\n  file:///root/.pulumi/locks/organization/hearth/home/5f.json: created by root@laptop (pid 71) at 2026-11-27T22:00:00Z\n",
    ),
    "the stack is currently locked (created by root@laptop (pid 71) at 2026-11-27T22:00:00Z): wait for that run to end; if it was killed, run `npm run deploy -- cancel`, then the same command again.",
  ],
  [
    ended(
      "Updating (home):\n    error: Docker at ssh://root@10.8.0.2: write /var/lib/docker/tmp/1: no space left on device.\n",
      "",
    ),
    "Docker at ssh://root@10.8.0.2: write /var/lib/docker/tmp/1: no space left on device. Free disk space on that host (`docker system df` there shows what uses it), then run the same command again.",
  ],
  [
    ended(
      "Updating (home):\n    error: 1 error occurred:\n    \t* Unable to create container: mkdir /var/lib/docker/1: no space left on device\n",
      "",
    ),
    "Unable to create container: mkdir /var/lib/docker/1: no space left on device. Free disk space on that host (`docker system df` there shows what uses it), then run the same command again.",
  ],
  [
    ended(
      "Updating (grown):\n    error: another operation (install/upgrade/rollback) is in progress\n",
      "",
    ),
    "another operation (install/upgrade/rollback) is in progress: if that run was killed, `helm rollback hearth` in the stack's namespace ends it, after a first installation `helm uninstall hearth`; both keep all data.",
  ],
  [
    ended("Updating (home):", ""),
    "the engine stopped; see the failed operation above.",
  ],
  [new Error("port 5 is taken: end it.\n at …"), "port 5 is taken: end it."],
])("%o is reduced to the sentences for the operator", (error, sentence) => {
  expect(reasonOf(error)).toBe(sentence);
});
