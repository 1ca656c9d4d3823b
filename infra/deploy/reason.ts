import { textOf } from "../../core/failure.ts";
import { ConfigRejected } from "../config/config.ts";
import { RELEASE_NAME } from "../kubernetes/release-name.ts";

/** The reason for the operator: every mistake of a configuration or of the chart's values, or the relevant line of the engine's report. */
export function reasonOf(error: unknown): string {
  const text = textOf(error);
  if (error instanceof ConfigRejected) {
    return text;
  }
  const lock = /stack is currently locked[^]*?: (created by .+)$/m.exec(text);
  if (lock !== null) {
    // The engine's own command leaves the plugins and half-created resources of the killed run.
    return `the stack is currently locked (${lock[1]}): wait for that run to end; if it was killed, run \`npm run deploy -- cancel\`, then the same command again.`;
  }
  const reported =
    // The engine's lists of errors: https://github.com/hashicorp/go-multierror/blob/main/format.go
    /^([^\S\n]*)error: (?!update failed|preview failed)(?:\d+ errors? occurred:\s+\* )?(.+)$/m.exec(
      text,
    );
  if (reported !== null) {
    const [line, indent, sentence = ""] = reported;
    const below = text.slice(reported.index + line.length + 1).split("\n");
    const mistakes = mistakesIn(below, sentence, `${indent} `);
    return `${sentence.replace(/^execution error at \(.*?\): /, "")}${mistakes.map((one) => `\n  ${one}`).join("")}${nextStep(sentence)}`;
  }
  const [first = text] = text.split("\n");
  return first.startsWith("code:") ? whatTheEngineComplained(text) : first;
}

/** The marked lines below an error; of the program's own `ConfigRejected` those that are further to the right. */
function mistakesIn(
  lines: readonly string[],
  sentence: string,
  indent: string,
): readonly string[] {
  const ofConfig = sentence.endsWith("; nothing was changed:");
  const end = lines.findIndex(
    (line) =>
      !/^\s*[-*] ./.test(line) && !(ofConfig && line.startsWith(indent)),
  );
  return lines
    .slice(0, end < 0 ? lines.length : end)
    .map((line) => line.replace(/^\s*(?:[-*] )?/, ""));
}

/** What to do about an engine's error that does not say it. */
function nextStep(sentence: string): string {
  if (sentence.endsWith('authentication failed for user "postgres"')) {
    return ": hearth:postgresPassword is not the server's; `npm run deploy -- rotate postgres` gives both another one.";
  }
  if (sentence.includes("unable to set memory limit")) {
    return ": its programs use more than the new limit: raise it in hearth:memory, then run the same command again.";
  }
  if (sentence.startsWith("failed to load checkpoint")) {
    return ': the state cannot be read, such as after a power failure. The file .pulumi/stacks/hearth/STACK.json of the state (`npx pulumi whoami --verbose` shows where) has its previous version next to it, with the ending .bak: copy that over it, then run `npm run deploy -- cancel` and the same command again (docs/deploy.md, "Destroy, and a lost state").';
  }
  if (sentence.startsWith("invalid YAML file")) {
    return ": fix the stack's configuration, Pulumi.STACK.yaml.";
  }
  if (sentence === "incorrect passphrase") {
    return ": set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE to that of `npm run init`.";
  }
  if (/no space left on device\.?$/.test(sentence)) {
    return `${sentence.endsWith(".") ? "" : "."} Free disk space on that host (\`docker system df\` there shows what uses it), then run the same command again.`;
  }
  // Helm's error for a release that is pending.
  return /another operation \(.*\) is in progress$/.test(sentence)
    ? `: if that run was killed, \`helm rollback ${RELEASE_NAME}\` in the stack's namespace ends it, after a first installation \`helm uninstall ${RELEASE_NAME}\`; both keep all data.`
    : "";
}

/** The last line of the command's stderr, which the wrapper's message contains. */
function whatTheEngineComplained(text: string): string {
  const complaint = /^ stderr: ([^]*?)^ err\?: /m.exec(text)?.[1];
  const line = complaint?.trimEnd().split("\n").at(-1)?.trim();
  return line === undefined || line === ""
    ? "the engine stopped; see the failed operation above."
    : line;
}
