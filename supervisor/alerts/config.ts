import { z } from "zod";
import { duration, name, webAddress, whole } from "../config/fields.ts";

const everySink = {
  name: name.optional(),
  remind: duration.prefault("4h"),
  fallback: z.boolean("must be true or false").default(false),
};
const token = z.string().min(1, "must not be empty").optional();
const mailAddress = z
  .string("must be a mail address")
  .regex(
    /^[^\r\n]*[^\s@<>]+@[^\s@<>]+>?$/,
    "must be a mail address, such as Hearth <hearth@example.org>",
  );

/** One entry of `notify:`; durations in milliseconds once parsed. */
const sink = z.discriminatedUnion("kind", [
  z.strictObject({
    ...everySink,
    kind: z.literal("webhook"),
    url: webAddress,
    token,
  }),
  z.strictObject({
    ...everySink,
    kind: z.literal("smtp"),
    host: z.string("must be a host name").min(1, "must be a host name"),
    port: whole(1, 65_535).default(587),
    security: z
      .enum(["tls", "starttls", "none"], "must be tls, starttls or none")
      .default("starttls"),
    user: z.string().min(1).optional(),
    password: z.string().min(1).optional(),
    from: mailAddress,
    to: z.union(
      [
        mailAddress.transform((address) => [address]),
        z.array(mailAddress).min(1),
      ],
      "must be a mail address or a list of them",
    ),
    owners: z.boolean("must be true or false").default(false),
  }),
  z.strictObject({
    ...everySink,
    kind: z.literal("ntfy"),
    url: z
      .url({
        protocol: /^https?$/,
        error:
          "must be the address of a topic, such as https://ntfy.sh/my-home",
      })
      .refine(
        (url) => /^\/[\w-]+\/?$/.test(new URL(url).pathname),
        "must be the address of a topic, such as https://ntfy.sh/my-home",
      ),
    token,
  }),
  z.strictObject({
    ...everySink,
    kind: z.literal("slack"),
    url: webAddress,
  }),
]);

export const notifySchema = z.array(sink).default([]);
export type SinkConfig = Readonly<z.output<typeof sink>>;

/** An external dead man's switch: `url` is requested regularly while this supervisor runs. */
export const watchdogSchema = z
  .strictObject({
    url: webAddress.optional(),
    every: duration.prefault("1m"),
  })
  .prefault({});
export type WatchdogConfig = Readonly<z.output<typeof watchdogSchema>>;

/** The supervisor of the other host, probed by a check named `peer`. */
export const peerSchema = z
  .strictObject({ url: webAddress.optional() })
  .prefault({});

/** Secrets must come from variables, not from files that may be copied. */
export function isSecretSetting(kind: unknown, key: string): boolean {
  return (
    ["password", "token", "client_secret"].includes(key) ||
    (key === "url" && kind === "slack")
  );
}
