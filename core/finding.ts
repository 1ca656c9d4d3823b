/** The result of one probe on this machine. */
export interface Finding {
  /** What was probed: disk, files, secrets, ports, postgres, redis, runners, settings, alerts, offsite, services, models, budgets. */
  readonly subject: string;
  /** wrong: something does not work; hint: it works, and could be better. */
  readonly level: "fine" | "hint" | "wrong";
  /** The state that was found, a sentence. */
  readonly text: string;
  /** The command that fixes it, or what to do; null when there is nothing to do. */
  readonly fix: string | null;
}

export function fine(subject: string, text: string): Finding {
  return { subject, level: "fine", text, fix: null };
}

export function hint(subject: string, text: string, fix: string): Finding {
  return { subject, level: "hint", text, fix };
}

export function wrong(subject: string, text: string, fix: string): Finding {
  return { subject, level: "wrong", text, fix };
}

/** Splits a sentence ("what is wrong: what to do.") into both halves. */
export function wrongBySentence(subject: string, sentence: string): Finding {
  const at = sentence.lastIndexOf(": ");
  return at < 0
    ? wrong(subject, sentence, "hearth up")
    : wrong(subject, `${sentence.slice(0, at)}.`, sentence.slice(at + 2));
}
