import {
  authorityFile,
  serverFile,
  TLS_ENDPOINT_NAME,
} from "./certificates.ts";
import {
  EDGE_PROBE_SECONDS,
  type HearthConfig,
} from "./config/config-schema.ts";
import { ports, type Host } from "./hosts.ts";

/** Largest request body that the gateway's configuration allows. */
const MAX_BODY_MB = 1_000;
/** HTTP/3 would need UDP ports. Caddy's own limits are 1 MB and none. */
const SERVER_OPTIONS = `enable_full_duplex
		protocols h1 h2
		max_header_size 64KiB
		timeouts {
			read_header 10s
		}`;
const globalOptions = `# Nobody reconfigures a running Caddy: a changed one is replaced.
	admin off
	# Port 80 is not ours.
	auto_https disable_redirects
	# Else Go closes a request's body as soon as its answer begins, and the connection to the gateway with it when the body was
	# not yet seen to end: on a busy machine one stream in some hundreds was cut.
	servers {
		${SERVER_OPTIONS}
	}`;
/** Connects to the other host's TLS endpoint: its certificate must be issued by the authority for its address. */
const tlsTransport = `versions 1.1
			tls_trust_pool file ${authorityFile}`;

/** Gives errors of the proxy a body: Caddy alone sends only the status. */
const answerErrors = (
  body: string,
  { type = "application/json", statuses = "502 503 504" } = {},
) => `handle_errors ${statuses} {
		header Content-Type ${type}
		respond \`${body}\`
	}`;
const notesUnavailable = answerErrors(
  JSON.stringify({
    error: "bad_gateway",
    reason:
      "The notes store cannot be reached. Sync again later; the command hearth status on the hosts shows the cause.",
  }),
);
/** In the format of OpenAI's and Anthropic's errors at once. */
const NO_GATEWAY = JSON.stringify({
  type: "error",
  error: {
    type: "gateway_unavailable",
    message:
      "No gateway responds. Try again later; the command hearth status on the hosts shows the cause.",
    param: null,
    code: "{err.status_code}",
  },
});
const gatewaysUnavailable = answerErrors(NO_GATEWAY);

/**
 * X-Forwarded-For decides which client the notes server locks out: it uses the last entry. It therefore gets exactly one, the
 * device's, for which the TLS endpoint of the notes' host trusts only the other host.
 */
const FORWARDED_FOR = "header_up X-Forwarded-For {client_ip}";
/**
 * After a partition, what is sent on an older connection to the other host is lost, and a device waits for TCP's repetitions. A new
 * connection fails or works within seconds; within a sync, requests still share one.
 */
const NOTES_IDLE_SECONDS = 10;
const NOTES_OPTIONS = `lb_try_duration 5s
		${FORWARDED_FOR}`;
const passNotesOn = `reverse_proxy notes:${ports.notes} {
		${NOTES_OPTIONS}
	}
	${notesUnavailable}`;

/**
 * Connects to the gateway on this host. A busy machine gets time: Caddy 2.10 cannot resend a body after a connection that
 * failed (https://github.com/caddyserver/caddy/issues/7546).
 */
const GATEWAY_OPTIONS = `lb_try_duration 15s
		lb_try_interval 100ms
		transport http {
			dial_timeout 10s
			keepalive off
		}`;
/** Inside the edge: the other host's gateway as an upstream without TLS. */
const relay = `127.0.0.1:${ports.gatewayTls}`;
/** Inside the edge: the gateways while none answers its probes in time, since an error of `handle_errors` cannot be handled. */
const lateGateways = `127.0.0.1:${ports.lateGateways}`;

const serversInside = (address: string) => `servers ${address} {
		${SERVER_OPTIONS}
		trusted_proxies static 127.0.0.1/32
	}`;

/** Connects to the first gateway whose last probe was answered within `timeout`; waits for `tries` of 100 ms if there is none. */
const gatewaysProbedWithin = (timeout: string, tries: number, options = "") =>
  `reverse_proxy gateway:${ports.gateway} ${relay} {${options}
		lb_policy first
		health_uri /health/readiness
		health_interval ${EDGE_PROBE_SECONDS}s
		health_timeout ${timeout}
		lb_retries ${tries}
		${GATEWAY_OPTIONS}
	}`;

const passToGateways = `request_body {
		max_size ${MAX_BODY_MB}MiB
	}
	${gatewaysProbedWithin("5s", 50)}
	handle_errors 503 {
		reverse_proxy ${lateGateways} {
			${FORWARDED_FOR}
			transport http {
				keepalive off
			}
		}
	}
	${answerErrors(NO_GATEWAY, { statuses: "502 504" })}`;

/** Input of an edge's configuration. */
export interface EdgeRoutes {
  /** The other host, whose gateway is the second choice. */
  readonly peer: Pick<Host, "address" | "ports">;
  /** Whether the notes store runs on this host rather than the other. */
  readonly hasNotes: boolean;
  /** Host names and the source of their certificates. */
  readonly https: HearthConfig["edge"];
}

/** Input of a TLS endpoint's configuration. */
export interface TlsEndpointRoutes {
  /** The other host: the only one trusted to state a call's origin. */
  readonly peer: Pick<Host, "address">;
  /** Whether the notes store runs on this host. */
  readonly hasNotes: boolean;
}

/**
 * The edge's configuration. The local gateway comes first; both are probed every second, which is why a stopping gateway
 * reports it for longer than two probes before it closes. A failed connection is retried until the probe has found the other one:
 * nothing was sent yet. If no gateway answers its probes in time, as on an overloaded machine, a call goes
 * to one that is only late. Failed calls say nothing about a gateway (`fail_duration`): Caddy would count bodies that a client breaks
 * off or malforms. Responses of unknown length (streams, change feeds) are passed on immediately. Headers have limits of size and time; a
 * body has the largest allowed `max_request_size_mb` at the gateway, which enforces its own setting, and none at the notes
 * (attachments).
 */
export function buildCaddyfile({
  peer,
  hasNotes,
  https: { hostname, notesHostname, tls, email },
}: EdgeRoutes): string {
  const notes = hasNotes
    ? passNotesOn
    : `reverse_proxy ${peer.address}:${peer.ports.notesTls} {
		${NOTES_OPTIONS}
		transport http {
			keepalive ${NOTES_IDLE_SECONDS}s
			${tlsTransport}
		}
	}
	${notesUnavailable}`;
  const certificate = {
    none: "",
    files: "\ttls /run/hearth/edge.crt /run/hearth/edge.key\n",
    internal: "\ttls internal\n",
    acme: `\ttls ${email ?? ""}\n`,
  }[tls];
  const site = (address: string, body: string, head = "") =>
    `${address} {\n${head}\t${body}\n}\n`;
  return `{
	${globalOptions}
	${serversInside(relay)}
	${serversInside(lateGateways)}
}

http://:${ports.edge} {
	${passToGateways}
}

http://:${ports.lateGateways} {
	bind 127.0.0.1
	${gatewaysProbedWithin("1m", 100, `\n\t\t${FORWARDED_FOR}`)}
	${gatewaysUnavailable}
}

# Caddy 2.10 sends a call in clear to an upstream with TLS when an upstream without it failed first: so both are without.
http://:${ports.gatewayTls} {
	bind 127.0.0.1
	reverse_proxy ${peer.address}:${peer.ports.gatewayTls} {
		${FORWARDED_FOR}
		transport http {
			dial_timeout 2s
			keepalive off
			${tlsTransport}
		}
	}
	${gatewaysUnavailable}
}

http://:${ports.notes} {
	${notes}
}
${hostname === undefined ? "" : `\n${site(`https://${hostname}`, passToGateways, certificate)}`}${notesHostname === undefined ? "" : `\n${site(`https://${notesHostname}`, notes, certificate)}`}`;
}

/**
 * The configuration of a host's TLS endpoint: each port leads to one service of this host. Only the other host is trusted to
 * state a call's origin, and not for the console.
 */
export function buildTlsCaddyfile({
  peer: { address },
  hasNotes,
}: TlsEndpointRoutes): string {
  const believed = (port: number) => `
	servers :${port} {
		${SERVER_OPTIONS}
		trusted_proxies static ${address}/32
	}`;
  const site = (port: number, body: string) => `
https://:${port} {
	tls ${serverFile(TLS_ENDPOINT_NAME, "crt")} ${serverFile(TLS_ENDPOINT_NAME, "key")}
	${body}
}
`;
  return `{
	${globalOptions}${believed(ports.gatewayTls)}${hasNotes ? believed(ports.notesTls) : ""}
}
${site(
  ports.gatewayTls,
  `reverse_proxy gateway:${ports.gateway} {
		${GATEWAY_OPTIONS}
	}
	${gatewaysUnavailable}`,
)}${hasNotes ? site(ports.notesTls, passNotesOn) : ""}${site(
    ports.console,
    `reverse_proxy supervisor:${ports.supervisor} {
		lb_try_duration 5s
	}
	${answerErrors("The supervisor of this host does not respond: npm run deploy -- doctor shows the cause.", { type: "text/plain" })}`,
  )}`;
}
