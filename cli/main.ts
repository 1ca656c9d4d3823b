import { sentencesOf } from "../core/failure.ts";
import { onOutputClosed } from "./output-closed.ts";
import { complain, print } from "./terminal.ts";
import { versionWords } from "../supervisor/release/version.ts";
import { runVerb, UsageError, type ExitCode, type Verb } from "./verb.ts";

/** Every command. */
export const hearth: Verb = {
  name: "",
  description: "Hearth: your own AI gateway and notes sync.",
  example: "hearth up --help",
  verbs: {
    up: async () => (await import("./up.ts")).up,
    down: async () => (await import("./down.ts")).down,
    open: async () => (await import("./open.ts")).open,
    login: async () => (await import("./login.ts")).login,
    whoami: async () => (await import("./whoami.ts")).whoami,
    logout: async () => (await import("./logout.ts")).logout,
    upgrade: async () => (await import("./upgrade.ts")).upgrade,
    status: async () => (await import("./status.ts")).status,
    check: async () => (await import("./check.ts")).check,
    logs: async () => (await import("./logs.ts")).logs,
    restart: async () => (await import("./restart.ts")).restart,
    history: async () => (await import("./history.ts")).history,
    audit: async () => (await import("./audit.ts")).audit,
    alerts: async () => (await import("./alerts.ts")).alerts,
    silence: async () => (await import("./silence.ts")).silence,
    pause: async () => (await import("./pause.ts")).pause,
    resume: async () => (await import("./pause.ts")).resume,
    maintenance: async () => (await import("./maintenance.ts")).maintenance,
    keys: async () => (await import("./keys.ts")).keys,
    users: async () => (await import("./users.ts")).users,
    teams: async () => (await import("./teams.ts")).teams,
    budgets: async () => (await import("./budgets.ts")).budgets,
    instances: async () => (await import("./instances.ts")).instances,
    models: async () => (await import("./models.ts")).models,
    chat: async () => (await import("./chat.ts")).chat,
    jobs: async () => (await import("./jobs.ts")).jobs,
    backup: async () => (await import("./backup.ts")).backup,
    offsite: async () => (await import("./offsite.ts")).offsite,
    restore: async () => (await import("./restore.ts")).restore,
    report: async () => (await import("./report.ts")).report,
    compact: async () => (await import("./jobs.ts")).compact,
    notes: async () => (await import("./notes.ts")).notes,
    doctor: async () => (await import("./doctor.ts")).doctor,
    rotate: async () => (await import("./rotate.ts")).rotate,
    home: async () => (await import("./home.ts")).home,
    uninstall: async () => (await import("./uninstall.ts")).uninstall,
    operator: async () => (await import("./operator.ts")).operator,
    "sign-out": async () => (await import("./sign-out.ts")).signOut,
    service: async () => (await import("./service.ts")).service,
    config: async () => (await import("./config.ts")).config,
    import: async () => (await import("./import.ts")).importing,
    completion: async () => (await import("./completion.ts")).completion,
  },
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
    if (error instanceof UsageError) {
      complain([error.message]);
      return 2;
    }
    complain(sentencesOf(error));
    return 1;
  }
}

/** Runs the command of this process's arguments and sets its exit code. */
export async function runCommandLine(): Promise<void> {
  // A closed output (`hearth logs | head`) is not an error.
  onOutputClosed(() => process.exit(0));
  process.exitCode = await runWords(process.argv.slice(2));
}

if (import.meta.main) {
  await runCommandLine();
}
