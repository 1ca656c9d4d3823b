import { sentencesOf } from "../core/failure.ts";
import { withoutCapital } from "../core/words.ts";
import { onOutputError } from "./output-closed.ts";
import { complain, print } from "./terminal.ts";
import { versionWords } from "../supervisor/release/version.ts";
import {
  runVerb,
  UsageError,
  type ExitCode,
  type Verb,
  type Verbs,
} from "./verb.ts";

/** Every command, by headings of the help. */
const SECTIONS: Readonly<Record<string, Verbs>> = {
  "Start and stop": {
    up: async () => (await import("./up.ts")).up,
    down: async () => (await import("./down.ts")).down,
    open: async () => (await import("./open.ts")).open,
    upgrade: async () => (await import("./upgrade.ts")).upgrade,
    service: async () => (await import("./service.ts")).service,
  },
  "State and reports": {
    status: async () => (await import("./status.ts")).status,
    doctor: async () => (await import("./doctor.ts")).doctor,
    logs: async () => (await import("./logs.ts")).logs,
    check: async () => (await import("./check.ts")).check,
    history: async () => (await import("./history.ts")).history,
    alerts: async () => (await import("./alerts.ts")).alerts,
    report: async () => (await import("./report.ts")).report,
    audit: async () => (await import("./audit.ts")).audit,
  },
  "Keys, budgets and models": {
    keys: async () => (await import("./keys.ts")).keys,
    users: async () => (await import("./users.ts")).users,
    teams: async () => (await import("./teams.ts")).teams,
    budgets: async () => (await import("./budgets.ts")).budgets,
    models: async () => (await import("./models.ts")).models,
    chat: async () => (await import("./chat.ts")).chat,
    instances: async () => (await import("./instances.ts")).instances,
    import: async () => (await import("./import.ts")).importing,
  },
  Notes: {
    notes: async () => (await import("./notes.ts")).notes,
    compact: async () => (await import("./jobs.ts")).compact,
  },
  Backups: {
    backup: async () => (await import("./backup.ts")).backup,
    offsite: async () => (await import("./offsite.ts")).offsite,
    restore: async () => (await import("./restore.ts")).restore,
  },
  Operation: {
    restart: async () => (await import("./restart.ts")).restart,
    jobs: async () => (await import("./jobs.ts")).jobs,
    pause: async () => (await import("./pause.ts")).pause,
    resume: async () => (await import("./pause.ts")).resume,
    silence: async () => (await import("./silence.ts")).silence,
    maintenance: async () => (await import("./maintenance.ts")).maintenance,
  },
  "Access and secrets": {
    login: async () => (await import("./login.ts")).login,
    whoami: async () => (await import("./whoami.ts")).whoami,
    logout: async () => (await import("./logout.ts")).logout,
    "sign-out": async () => (await import("./sign-out.ts")).signOut,
    operator: async () => (await import("./operator.ts")).operator,
    rotate: async () => (await import("./rotate.ts")).rotate,
  },
  "This installation": {
    config: async () => (await import("./config.ts")).config,
    home: async () => (await import("./home.ts")).home,
    completion: async () => (await import("./completion.ts")).completion,
    uninstall: async () => (await import("./uninstall.ts")).uninstall,
  },
};

/** Every command. */
export const hearth: Verb = {
  name: "",
  description: "Hearth: your own AI gateway and notes sync.",
  example: "hearth up --help",
  verbs: Object.assign({}, ...Object.values(SECTIONS)) as Verbs,
  sections: SECTIONS,
};

/** Runs one command, prints its output and its errors, and returns its exit code. */
export async function runWords(words: readonly string[]): Promise<ExitCode> {
  try {
    const [first] = words;
    if (first === "--version" || first === "-v") {
      print(versionWords());
      return 0;
    }
    // Asked by the shell's completion script.
    if (first === "complete") {
      const { completeWords } = await import("./completion.ts");
      await completeWords(hearth, words.slice(2));
      return 0;
    }
    return await runVerb(hearth, words);
  } catch (error) {
    // Imported late, as the commands are.
    const { Refusal } = await import("../supervisor/gateway/admin-api.ts");
    if (error instanceof Refusal) {
      complain(error.sentences.map(withoutCapital));
      // What the command names does not exist at the gateway, or exists already: as wrong as an unknown service.
      return [404, 409].includes(error.status) ? 2 : 1;
    }
    complain(sentencesOf(error));
    return error instanceof UsageError ? 2 : 1;
  }
}

/** Runs the command of this process's arguments and sets its exit code. */
export async function runCommandLine(): Promise<void> {
  // A closed output (`hearth logs | head`) is not an error.
  onOutputError(({ code }) => {
    if (code === "EPIPE") {
      process.exit(0);
    }
    complain([
      `cannot write the output (${code}): free space or write it elsewhere, then run the command again.`,
    ]);
    process.exit(1);
  });
  process.exitCode = await runWords(process.argv.slice(2));
}

if (import.meta.main) {
  await runCommandLine();
}
