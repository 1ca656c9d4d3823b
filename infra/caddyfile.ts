import { edgeProbeSeconds } from "./config-schema.ts";
import type { HearthConfig } from "./config.ts";
import { otherHost, ports, type Host, type Hosts } from "./hosts.ts";

/** Of one request to the gateway: what its configuration allows at most. */
const MAX_BODY_MB = 1_000;
/** Caddy's own limits are 1 MB and none. */
const headerLimits = `max_header_size 64KiB
		timeouts {
			read_header 10s
		}`;

/**
 * The edge's configuration. The local gateway comes first; both are probed every second, which is why a gateway that stops says
 * so for longer than two probes before it closes. What cannot be connected is tried again elsewhere: nothing was sent yet.
 * Answers of unknown length (streams, change feeds) are passed on as they come. Headers have limits of size and time; a body
 * has the largest `max_request_size_mb` at the gateway, which enforces its own setting, and none at the notes (attachments).
 */
export function buildCaddyfile(
  config: HearthConfig,
  hosts: Hosts,
  host: Host,
  healthPort: number,
): string {
  const other = hosts[otherHost(host.name)];
  const gateways = `request_body {
		max_size ${MAX_BODY_MB}MiB
	}
	reverse_proxy gateway:${ports.gateway} ${bracketed(other.address)}:${ports.gateway} {
		lb_policy first
		lb_try_duration 15s
		lb_try_interval 100ms
		fail_duration 1s
		health_uri /health/readiness
		health_interval ${edgeProbeSeconds}s
		health_timeout 5s
		transport http {
			dial_timeout 2s
			keepalive off
		}
	}`;
  // X-Forwarded-For decides whom the notes server locks out: it takes the last one. So it gets exactly one, the device's, which
  // the notes' own edge believes from the other host's edge alone.
  const isNotesHost = host.name === config.placement.notes;
  const notes = `reverse_proxy ${isNotesHost ? "notes" : bracketed(other.address)}:${ports.notes} {
		lb_try_duration 5s
		header_up X-Forwarded-For {client_ip}
	}`;
  const believed = isNotesHost
    ? `
	servers :${ports.notes} {
		enable_full_duplex
		${headerLimits}
		trusted_proxies static ${other.address}/${other.address.includes(":") ? 128 : 32}
	}`
    : "";
  const { hostname, notesHostname, tls, email } = config.edge;
  const certificate = {
    none: "",
    files: "\ttls /run/hearth/edge.crt /run/hearth/edge.key\n",
    internal: "\ttls internal\n",
    acme: `\ttls ${email ?? ""}\n`,
  }[tls];
  const site = (address: string, body: string, head = "") =>
    `${address} {\n${head}\t${body}\n}\n`;
  return `{
	# Nobody reconfigures a running edge: a changed one is replaced.
	admin off
	# Port 80 is not ours.
	auto_https disable_redirects
	# Else Go closes a request's body as soon as its answer begins, and the connection to the gateway with it when the body was
	# not yet seen to end: on a busy machine one stream in some hundreds was cut.
	servers {
		enable_full_duplex
		${headerLimits}
	}${believed}
}

http://:${ports.edge} {
	${gateways}
}

http://:${ports.notes} {
	${notes}
}

http://:${healthPort} {
	bind 127.0.0.1
	respond "ok"
}
${hostname === undefined ? "" : `\n${site(`https://${hostname}`, gateways, certificate)}`}${notesHostname === undefined ? "" : `\n${site(`https://${notesHostname}`, notes, certificate)}`}`;
}

function bracketed(address: string): string {
  return address.includes(":") ? `[${address}]` : address;
}
