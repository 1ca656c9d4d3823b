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
import { faultOfGrace, INVALID_GRACE } from "../core/grace-options.ts";
import { readRunFile } from "../supervisor/runtimes/process/run-file.ts";
import { supervisorHere } from "./stack-client.ts";
import { print, printAnswer, printJson } from "./terminal.ts";
import { defineVerb, jsonArg, UsageError } from "./verb.ts";

export const rotate = defineVerb({
  name: "rotate",
  description:
    "Rotate a secret of the stack running here, without failed calls.",
  example: "hearth rotate master --grace 2h",
  args: {
    secret: {
      type: "positional",
      required: true,
      description: "master, postgres or notes",
    },
    grace: {
      type: "string",
      description: "With master: how long the old key remains valid (24h)",
    },
    end: {
      type: "boolean",
      default: false,
      description: "With master: invalidate the old key now",
    },
    ...jsonArg,
  },
  run: async ({ secret, grace, end, json }) => {
    const kind = kindOf(secret);
    const fault = faultOfGrace(kind, { grace, end });
    if (fault !== null) {
      throw new UsageError(fault);
    }
    const graceMs = parseDuration(grace ?? "24h");
    if (graceMs === undefined) {
      throw new UsageError(INVALID_GRACE);
    }
    const place = findPlace();
    if (kind === "master" && end) {
      await endGrace(place);
      printAnswer(
        json,
        { secret: kind, previousMasterKeyUntil: null },
        "The old master key is no longer valid.",
      );
      return 0;
    }
    const { previousMasterKeyUntil } = await rotateSecret(place, kind, graceMs);
    if (json) {
      const { secrets: file } = place.home;
      printJson({ secret: kind, file, previousMasterKeyUntil });
      return 0;
    }
    const file = asTyped(place.home.secrets);
    switch (kind) {
      case "master":
        print(
          `Master key rotated: ${file} (masterKey). The old key is valid until ${previousMasterKeyUntil}; end it now with \`hearth rotate master --end\`.`,
        );
        break;
      case "postgres":
        print(
          `All Postgres passwords rotated: ${file}. The old ones are no longer valid.`,
        );
        break;
      case "notes":
        print(
          `Admin password of the notes store rotated: ${file} (notesAdminPassword). Devices use their own users and are not affected.`,
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
      "to replace a provider's key, run `hearth models key OPENAI_API_KEY` (with the name of its variable), which takes effect at once; a variable that is set when Hearth starts takes precedence, so change it there, too.",
    );
  }
  throw new UsageError(
    `"${word}" cannot be rotated; choose one of ${ROTATION_KINDS.join(", ")}. On two hosts: npm run deploy -- rotate.`,
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
      "Hearth is not running here; secrets are rotated while it runs. Run `hearth up` to start it.",
    );
  }
  return {
    home,
    gateway: gateway.address,
    notes: notes.address,
    postgresPort: postgres.port,
  };
}
