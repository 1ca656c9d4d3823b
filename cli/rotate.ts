import { parseDuration } from "../core/duration.ts";
import { asTyped, locateHome } from "../supervisor/home/home.ts";
import {
  endGrace,
  rotateSecret,
  ROTATION_KINDS,
  type RotationKind,
  type RotationPlace,
} from "../embedded/rotation.ts";
import { Failure } from "../core/failure.ts";
import { readRunFile } from "../supervisor/runtimes/process/run-file.ts";
import { supervisorHere } from "./stack-client.ts";
import { print } from "./terminal.ts";
import { defineVerb, UsageError } from "./verb.ts";

export const rotate = defineVerb({
  name: "rotate",
  description:
    "Replace a secret of the stack that runs here, without a failed call.",
  example: "hearth rotate master --grace 2h",
  args: {
    secret: {
      type: "positional",
      required: true,
      description: "master, postgres or notes",
    },
    grace: {
      type: "string",
      default: "24h",
      description: "How long the old master key goes on working",
    },
    end: {
      type: "boolean",
      default: false,
      description: "With master: refuse the old key from now on",
    },
  },
  run: async ({ secret, grace, end }) => {
    const kind = kindOf(secret);
    const graceMs = parseDuration(grace);
    if (graceMs === undefined) {
      throw new UsageError("--grace takes a time such as 30m, 24h or 7d.");
    }
    const place = findPlace();
    if (kind === "master" && end) {
      await endGrace(place);
      print("The old master key is refused.");
      return 0;
    }
    const { previousMasterKeyUntil } = await rotateSecret(place, kind, graceMs);
    const file = asTyped(place.home.secrets);
    switch (kind) {
      case "master":
        print(
          `The master key is new, it lies in ${file} (masterKey). The old one works until ${previousMasterKeyUntil}; \`hearth rotate master --end\` ends it now.`,
        );
        break;
      case "postgres":
        print(
          `All passwords of Postgres are new, the old ones refused. ${file} has them.`,
        );
        break;
      case "notes":
        print(
          `The notes store's admin password is new, it lies in ${file} (notesAdminPassword). Devices log in as their own users and notice nothing.`,
        );
        break;
    }
    return 0;
  },
});

function kindOf(word: string): RotationKind {
  const kind = ROTATION_KINDS.find((each) => each === word);
  if (kind !== undefined) {
    return kind;
  }
  if (word === "provider") {
    throw new UsageError(
      "a provider's key comes from your environment or from config/gateway.local.yaml: change it there. The gateway reads a file again at `POST /config/reload` (docs/gateway.md), its environment at `hearth down` and `hearth up`.",
    );
  }
  throw new UsageError(
    `"${word}" cannot be rotated here: ${ROTATION_KINDS.join(", ")} can. On two hosts: npm run deploy -- rotate.`,
  );
}

function findPlace(): RotationPlace {
  const home = locateHome();
  const { gateway, notes, postgres } = readRunFile(home.runFile).services;
  if (
    supervisorHere(home) === undefined ||
    gateway === undefined ||
    notes === undefined ||
    postgres === undefined
  ) {
    throw new Failure(
      "Hearth is not running here, and a secret is changed in what runs: `hearth up` starts it.",
    );
  }
  return {
    home,
    gateway: gateway.address,
    notes: notes.address,
    postgresPort: postgres.port,
  };
}
