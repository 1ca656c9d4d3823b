import { recordOf } from "../../../core/json.ts";
import { textOf, titleOf, type AlertMessage } from "../message.ts";

interface SmtpSettings {
  readonly host: string;
  readonly port: number;
  /** tls from the first byte, starttls before any other command, or none. */
  readonly security: "tls" | "starttls" | "none";
  readonly user?: string | undefined;
  readonly password?: string | undefined;
  readonly from: string;
  readonly to: readonly string[];
}

/** A plain-text mail to all recipients; nodemailer is loaded when the first one is sent. */
export async function sendMail(
  settings: SmtpSettings,
  message: AlertMessage,
  signal: AbortSignal,
): Promise<void> {
  const { createTransport } = await import("nodemailer");
  const { host, port, security, user, password } = settings;
  const transport = createTransport({
    host,
    port,
    secure: security === "tls",
    requireTLS: security === "starttls",
    ignoreTLS: security === "none",
    connectionTimeout: 10_000,
    greetingTimeout: 10_000,
    socketTimeout: 10_000,
    ...(user === undefined ? {} : { auth: { user, pass: password ?? "" } }),
  });
  const stop = () => transport.close();
  signal.addEventListener("abort", stop, { once: true });
  try {
    await transport.sendMail({
      from: settings.from,
      to: message.owner ?? [...settings.to],
      subject: titleOf(message),
      text: `${textOf(message)}\n\n-- \n${footerOf(message)}\n`,
      date: new Date(message.at),
      messageId: `<${message.id}@hearth.invalid>`,
      headers: { "Auto-Submitted": "auto-generated" },
    });
  } catch (error) {
    throw new Error(reasonOf(error), { cause: error });
  } finally {
    signal.removeEventListener("abort", stop);
    transport.close();
  }
}

function footerOf({ host, consoleUrl, owner }: AlertMessage): string {
  return [
    `Hearth on ${host}`,
    ...(consoleUrl === undefined ? [] : [consoleUrl]),
    ...(owner === undefined
      ? ['hearth silence <name> 2h --why "…" silences an alarm']
      : []),
  ].join("\n");
}

const CHECK_SECURITY =
  "check `port` and `security` (tls is usual at port 465, starttls at 587)";

/** Responses of a server may quote secrets, so only the kind of error and the code are repeated. */
function reasonOf(error: unknown): string {
  const field = (name: string): string | undefined => {
    const value = recordOf(error)[name];
    return value === undefined ? undefined : String(value);
  };
  switch (field("code")) {
    case "EAUTH":
      return `the mail server rejected user or password${numbered(field("responseCode"))}`;
    case "EENVELOPE":
      return `the mail server rejected sender or recipient${numbered(field("responseCode"))}`;
    case "ETLS":
      return "the connection could not be encrypted as required by `security`";
    case "EMESSAGE":
      return `the mail server rejected the message${numbered(field("responseCode"))}`;
    // Of the socket: the text is Node's or nodemailer's own.
    case "ESOCKET":
      return field("library") === "SSL routines"
        ? `TLS with the mail server failed (${field("reason")}): ${CHECK_SECURITY}`
        : `the connection to the mail server failed (${field("message")})`;
    case "ETIMEDOUT":
      return `the mail server did not answer in time (${field("message")}): ${CHECK_SECURITY}`;
    default:
      return `the connection to the mail server failed (${field("responseCode") ?? field("code") ?? "no reason given"})`;
  }
}

function numbered(responseCode: string | undefined): string {
  return responseCode === undefined ? "" : ` (${responseCode})`;
}
