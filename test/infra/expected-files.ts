const GLOBAL_OPTIONS = `# Nobody reconfigures a running Caddy: a changed one is replaced.
	admin off
	# Port 80 is not ours.
	auto_https disable_redirects
	# Else Go closes a request's body as soon as its answer begins, and the connection to the gateway with it when the body was
	# not yet seen to end: on a busy machine one stream in some hundreds was cut.
	servers {
		enable_full_duplex
		protocols h1 h2
		max_header_size 64KiB
		timeouts {
			read_header 10s
		}
	}`;

const NO_GATEWAY = `header Content-Type application/json
		respond \`{"type":"error","error":{"type":"gateway_unavailable","message":"No gateway responds. Try again later; the command hearth status on the hosts shows the cause.","param":null,"code":"{err.status_code}"}}\``;

const HEALTH_SITE = `
http://:2020 {
	bind 127.0.0.1
	respond "ok"
}
`;

/** The edge of a host. */
export const caddyfile = (of: {
  readonly other: string;
  /** How the notes are reached. */
  readonly notes: string;
}) => `{
	${GLOBAL_OPTIONS}
	servers 127.0.0.1:4444 {
		enable_full_duplex
		protocols h1 h2
		max_header_size 64KiB
		timeouts {
			read_header 10s
		}
		trusted_proxies static 127.0.0.1/32
	}
	servers 127.0.0.1:4445 {
		enable_full_duplex
		protocols h1 h2
		max_header_size 64KiB
		timeouts {
			read_header 10s
		}
		trusted_proxies static 127.0.0.1/32
	}
}

http://:4000 {
	request_body {
		max_size 1000MiB
	}
	reverse_proxy gateway:4001 127.0.0.1:4444 {
		lb_policy first
		health_uri /health/readiness
		health_interval 1s
		health_timeout 5s
		lb_retries 50
		lb_try_duration 15s
		lb_try_interval 100ms
		transport http {
			dial_timeout 10s
			keepalive off
		}
	}
	handle_errors 503 {
		reverse_proxy 127.0.0.1:4445 {
			header_up X-Forwarded-For {client_ip}
			transport http {
				keepalive off
			}
		}
	}
	handle_errors 502 504 {
		${NO_GATEWAY}
	}
}

http://:4445 {
	bind 127.0.0.1
	reverse_proxy gateway:4001 127.0.0.1:4444 {
		header_up X-Forwarded-For {client_ip}
		lb_policy first
		health_uri /health/readiness
		health_interval 1s
		health_timeout 1m
		lb_retries 100
		lb_try_duration 15s
		lb_try_interval 100ms
		transport http {
			dial_timeout 10s
			keepalive off
		}
	}
	handle_errors 502 503 504 {
		${NO_GATEWAY}
	}
}

# Caddy 2.10 sends a call in clear to an upstream with TLS when an upstream without it failed first: so both are without.
http://:4444 {
	bind 127.0.0.1
	reverse_proxy ${of.other}:4444 {
		header_up X-Forwarded-For {client_ip}
		transport http {
			dial_timeout 2s
			keepalive off
			versions 1.1
			tls_trust_pool file /run/hearth/ca.crt
		}
	}
	handle_errors 502 503 504 {
		${NO_GATEWAY}
	}
}

http://:5984 {
	${of.notes}
}
${HEALTH_SITE}`;

const NO_NOTES = `handle_errors 502 503 504 {
		header Content-Type application/json
		respond \`{"error":"bad_gateway","reason":"The notes store cannot be reached. Sync again later; the command hearth status on the hosts shows the cause."}\`
	}`;

export const NOTES_HERE = `reverse_proxy notes:5984 {
		lb_try_duration 5s
		header_up X-Forwarded-For {client_ip}
	}
	${NO_NOTES}`;

export const NOTES_THERE = `reverse_proxy 10.8.0.1:6984 {
		lb_try_duration 5s
		header_up X-Forwarded-For {client_ip}
		transport http {
			keepalive 10s
			versions 1.1
			tls_trust_pool file /run/hearth/ca.crt
		}
	}
	${NO_NOTES}`;

/** Of a host's TLS endpoint. Only the other host is trusted to state a call's origin. */
export const tlsCaddyfile = (of: {
  readonly other: string;
  readonly hasNotes: boolean;
}) => {
  const believed = (port: number) => `
	servers :${port} {
		enable_full_duplex
		protocols h1 h2
		max_header_size 64KiB
		timeouts {
			read_header 10s
		}
		trusted_proxies static ${of.other}/32
	}`;
  return `{
	${GLOBAL_OPTIONS}${believed(4444)}${of.hasNotes ? believed(6984) : ""}
}

https://:4444 {
	tls /run/hearth/tls.crt /run/hearth/tls.key
	reverse_proxy gateway:4001 {
		lb_try_duration 15s
		lb_try_interval 100ms
		transport http {
			dial_timeout 10s
			keepalive off
		}
	}
	handle_errors 502 503 504 {
		${NO_GATEWAY}
	}
}
${
  of.hasNotes
    ? `
https://:6984 {
	tls /run/hearth/tls.crt /run/hearth/tls.key
	${NOTES_HERE}
}
`
    : ""
}
https://:4443 {
	tls /run/hearth/tls.crt /run/hearth/tls.key
	reverse_proxy supervisor:4080 {
		lb_try_duration 5s
	}
	handle_errors 502 503 504 {
		header Content-Type text/plain
		respond \`The supervisor of this host does not respond: npm run deploy -- doctor shows the cause.\`
	}
}
${HEALTH_SITE}`;
};

const NAMES =
  "hearth-couchdb|hearth-edge|hearth-gateway|hearth-postgres|hearth-redis|hearth-supervisor|hearth-tls";

/** The socket proxy: exact paths, past events of one kind, and nothing else. */
export const haproxyConfig = `global
  maxconn 100
  log stdout format raw local0 notice

defaults
  mode http
  timeout connect 5s
  timeout client 1m
  timeout server 1m
  # A restart waits for the container's drain.
  timeout tunnel 5m

frontend docker
  bind :2375
  monitor-uri /healthz
  monitor fail if { nbsrv(engine) eq 0 }
  # A normalised path is matched, and what is encoded in a strange way is refused.
  acl plain path -m reg ^[A-Za-z0-9._/-]*$
  acl get method GET
  acl post method POST
  acl list path -m reg ^(/v1\\.[0-9]+)?/containers/json$
  acl look path -m reg ^(/v1\\.[0-9]+)?/containers/(${NAMES})/(json|logs|stats)$
  acl again path -m reg ^(/v1\\.[0-9]+)?/containers/(${NAMES})/restart$
  acl events path -m reg ^(/v1\\.[0-9]+)?/events$
  # The whole query: the engine reads a repeated parameter differently, and without an end it sends new events forever.
  acl memory query -m reg ^since=[0-9]{1,12}\\.[0-9]{3}&until=[0-9]{1,12}\\.[0-9]{3}&filters=%7B%22container%22%3A%5B%22(${NAMES})%22%5D%2C%22event%22%3A%5B%22oom%22%5D%7D$
  acl past url_param(until),word(1,.),sub(txn.now) le 0
  http-request set-var(txn.now) date
  http-request deny deny_status 403 unless plain
  http-request allow if get list
  http-request allow if get look
  http-request allow if post again
  http-request allow if get events memory past
  http-request deny deny_status 403
  default_backend engine

backend engine
  timeout server 5m
  server engine unix@/var/run/docker.sock check inter 5s
`;
