import { fixCommand } from "./config-fixes.ts";
import {
  configSchema,
  type HearthConfig,
  type HostSettings,
} from "./config-schema.ts";
import { certificateMistakes, expiredOn } from "./edge-certificate.ts";
import { listenersOn, servesHttps } from "./listeners.ts";
import { twoHosts, type StackSettings } from "./stack-settings.ts";
import { isPrivateAddress } from "../../core/network-addresses.ts";

/** Mistakes of a stack on two hosts that a single setting cannot show. */
export function crossCheck(config: HearthConfig): readonly string[] {
  return [
    ...hostMistakes(config),
    ...portMistakes(config),
    ...imageMistakes(config),
    ...edgeMistakes(config),
    ...dependentMistakes(config, twoHosts),
  ];
}

/** Settings that others require, of every kind of stack. */
export function dependentMistakes(
  config: Pick<
    HearthConfig,
    | "masterKeyPrevious"
    | "masterKeyPreviousUntil"
    | "offsiteTarget"
    | "offsiteIdentity"
    | "offsiteRcloneConfig"
  >,
  settings: StackSettings,
): readonly string[] {
  return [
    ...(config.masterKeyPrevious === undefined
      ? []
      : required(
          config,
          ["masterKeyPreviousUntil"],
          "with masterKeyPrevious, which must expire",
          settings,
        )),
    ...(config.offsiteTarget === undefined
      ? []
      : required(
          config,
          ["offsiteIdentity", "offsiteRcloneConfig"],
          "with offsiteTarget",
          settings,
        )),
  ];
}

function hostMistakes(config: HearthConfig): readonly string[] {
  const { hosts } = config;
  const errors: string[] = [];
  if (machineOf(hosts.a.docker) === machineOf(hosts.b.docker)) {
    errors.push(
      sentence(["hosts", "b", "docker"], "is the same engine as host A's"),
    );
  }
  if (hosts.a.address === hosts.b.address) {
    errors.push(
      sentence(["hosts", "b", "address"], "is the same address as host A's"),
    );
  }
  for (const name of ["a", "b"] as const) {
    for (const [index, address] of hosts[name].publish.entries()) {
      if (!isPrivateAddress(address) && !servesHttps(config)) {
        errors.push(
          sentence(
            ["hosts", name, "publish", String(index)],
            `is ${address}, a public address: only HTTPS is served there, and edge.hostname is not set`,
          ),
        );
      }
    }
  }
  return errors;
}

/** An endpoint without what does not tell two machines apart: the user, ssh's default port, the case of a name. */
function machineOf(endpoint: string): string {
  return endpoint.startsWith("ssh://")
    ? endpoint
        .toLowerCase()
        .replace(/^ssh:\/\/[^/@]+@/, "ssh://")
        .replace(/:22$/, "")
    : endpoint;
}

/** Two services at one address and port of a host: Docker would notice after it has removed the running containers. */
export function portMistakes(settings: HostSettings): readonly string[] {
  const defaults = configSchema.shape.ports.parse(undefined);
  const errors = (["a", "b"] as const).flatMap((host) => {
    const listeners = listenersOn(host, settings);
    return listeners.flatMap((later, index) => {
      const earlier = listeners
        .slice(0, index)
        .find(
          ({ address, port }) =>
            address === later.address && port === later.port,
        );
      if (earlier === undefined) {
        return [];
      }
      // The one that was changed is wrong.
      const [wrong, other] =
        later.port === defaults[later.setting]
          ? [earlier, later]
          : [later, earlier];
      return [
        sentence(
          ["ports", wrong.setting],
          `is ${wrong.port}, which ports.${other.setting} has too`,
        ),
      ];
    });
  });
  return [...new Set(errors)];
}

/** Images without a digest, unless they are allowed. */
export function imageMistakes(
  config: {
    readonly images: Readonly<Record<string, string | undefined>>;
    readonly imagesWithoutDigest: string;
  },
  settings: StackSettings = twoHosts,
): readonly string[] {
  return Object.entries(config.images).flatMap(([name, reference]) =>
    reference === undefined ||
    reference.includes("@sha256:") ||
    config.imagesWithoutDigest === "allow"
      ? []
      : [
          sentence(
            ["images", name],
            `is ${reference}, which has no digest, so its content can change (for images that exist only on the ${settings === twoHosts ? "hosts" : "nodes"}: npx pulumi config set hearth:imagesWithoutDigest allow)`,
            settings,
          ),
        ],
  );
}

function edgeMistakes(config: HearthConfig): readonly string[] {
  const { edge } = config;
  const errors: string[] = [...hostnameMistakes(config, twoHosts)];
  if (edge.tls === "none" && servesHttps(config)) {
    errors.push(
      sentence(
        ["edge", "tls"],
        "is none, but a host name is set, which is served with a certificate",
      ),
    );
  }
  if (edge.tls === "acme" && edge.email === undefined) {
    errors.push(
      sentence(["edge", "email"], `is required (edge.tls is ${edge.tls})`),
    );
  }
  return errors;
}

/** Host names and the files of their certificate, of every kind of stack. */
export interface HostnameSettings {
  readonly edge: {
    readonly tls: string;
    readonly hostname?: string | undefined;
    readonly notesHostname?: string | undefined;
    /** On Kubernetes. */
    readonly supervisorHostname?: string | undefined;
  };
  readonly edgeCertificate?: string | undefined;
  readonly edgeKey?: string | undefined;
}

/** Mistakes in the host names and the files of their certificate. */
export function hostnameMistakes(
  config: HostnameSettings,
  settings: StackSettings,
): readonly string[] {
  const { edge } = config;
  const cause = `(edge.tls is ${edge.tls})`;
  return [
    ...(edge.tls !== "none" && !servesHttps(config)
      ? [sentence(["edge", "hostname"], `is required ${cause}`, settings)]
      : []),
    ...(edge.hostname !== undefined && edge.hostname === edge.notesHostname
      ? [
          sentence(
            ["edge", "notesHostname"],
            "is the gateway's host name; the notes need a separate one",
            settings,
          ),
        ]
      : []),
    ...(edge.tls === "files"
      ? [
          ...required(config, ["edgeCertificate", "edgeKey"], cause, settings),
          ...ownCertificateMistakes(config, settings),
        ]
      : []),
  ];
}

/** Mistakes in the operator's own certificate, once both of its settings are there. */
function ownCertificateMistakes(
  { edge, edgeCertificate: certificate, edgeKey: key }: HostnameSettings,
  settings: StackSettings,
): readonly string[] {
  if (certificate === undefined || key === undefined) {
    return [];
  }
  const names = [edge.hostname, edge.notesHostname, edge.supervisorHostname];
  return certificateMistakes(
    { certificate, key },
    names.filter((name) => name !== undefined),
  ).map(({ setting, what }) => sentence([setting], what, settings));
}

/**
 * Whether the operator's own certificate has expired, and the command that replaces it. Not a mistake of the configuration: rotations and
 * `destroy` work with it.
 */
export function expiredCertificate(
  { edge, edgeCertificate }: HostnameSettings,
  settings: StackSettings,
): { readonly what: string; readonly fix: string } | null {
  const day =
    edge.tls === "files" && edgeCertificate !== undefined
      ? expiredOn(edgeCertificate)
      : undefined;
  if (day === undefined) {
    return null;
  }
  const without =
    settings === twoHosts
      ? ` (without a new one: ${fixCommand(["edge", "tls"], settings)})`
      : "";
  return {
    what: `hearth:edgeCertificate expired on ${day}${without}`,
    fix: fixCommand(["edgeCertificate"], settings),
  };
}

/** Those of the settings that are missing, although `cause` requires them. */
export function required<Config extends object>(
  config: Config,
  keys: readonly (keyof Config & string)[],
  cause: string,
  settings: StackSettings,
): readonly string[] {
  return keys
    .filter((key) => config[key] === undefined)
    .map((key) => sentence([key], `is required ${cause}`, settings));
}

/** A mistake in one setting, with the command that fixes it. */
export function sentence(
  path: readonly string[],
  what: string,
  settings: StackSettings = twoHosts,
): string {
  return `hearth:${path.join(".")} ${what}: ${fixCommand(path, settings)}`;
}
