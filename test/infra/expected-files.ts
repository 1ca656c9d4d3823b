/** The edge of a host. */
export const caddyfile = (of: {
  readonly other: string;
  readonly notes: string;
  readonly notesListener: string;
}) => `{
	# Nobody reconfigures a running edge: a changed one is replaced.
	admin off
	# Port 80 is not ours.
	auto_https disable_redirects
	# Else Go closes a request's body as soon as its answer begins, and the connection to the gateway with it when the body was
	# not yet seen to end: on a busy machine one stream in some hundreds was cut.
	servers {
		enable_full_duplex
		max_header_size 64KiB
		timeouts {
			read_header 10s
		}
	}${of.notesListener}
}

http://:4000 {
	request_body {
		max_size 1000MiB
	}
	reverse_proxy gateway:4001 ${of.other}:4001 {
		lb_policy first
		lb_try_duration 15s
		lb_try_interval 100ms
		fail_duration 1s
		health_uri /health/readiness
		health_interval 1s
		health_timeout 5s
		transport http {
			dial_timeout 2s
			keepalive off
		}
	}
}

http://:5984 {
	reverse_proxy ${of.notes}:5984 {
		lb_try_duration 5s
		header_up X-Forwarded-For {client_ip}
	}
}

http://:2020 {
	bind 127.0.0.1
	respond "ok"
}
`;

const names =
  "hearth-couchdb|hearth-edge|hearth-gateway|hearth-postgres|hearth-redis|hearth-supervisor";

/** The socket proxy: exact paths and nothing else. */
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
  # A normalised path is matched, and what is encoded in a strange way is refused.
  acl plain path -m reg ^[A-Za-z0-9._/-]*$
  acl get method GET
  acl post method POST
  acl list path -m reg ^(/v1\\.[0-9]+)?/containers/json$
  acl look path -m reg ^(/v1\\.[0-9]+)?/containers/(${names})/(json|logs|stats)$
  acl again path -m reg ^(/v1\\.[0-9]+)?/containers/(${names})/restart$
  http-request deny deny_status 403 unless plain
  http-request allow if get list
  http-request allow if get look
  http-request allow if post again
  http-request deny deny_status 403
  default_backend engine

backend engine
  timeout server 5m
  server engine unix@/var/run/docker.sock
`;
