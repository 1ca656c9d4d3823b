{{/*
What the schema cannot say: mistakes within values, and values that contradict each other. All are reported at once, each as one
sentence that says what to do.
*/}}
{{- define "hearth.mistakes" -}}
{{- $root := . }}
{{- with .Values }}
{{- include "hearth.imageMistakes" . }}
{{- range $name := list "endpointDelay" "drainNotice" "drainTimeout" }}
{{- include "hearth.durationMistake" (list $name (index $root.Values $name)) }}
{{- end }}
{{- include "hearth.durationMistake" (list "migration.timeout" .migration.timeout) }}
{{- include "hearth.durationMistake" (list "monitoring.serviceMonitor.interval" .monitoring.serviceMonitor.interval) }}
{{- range $path, $size := dict "gateway.journal.size" .gateway.journal.size "postgres.bundled.size" .postgres.bundled.size "postgres.cluster.size" .postgres.cluster.size "redis.bundled.size" .redis.bundled.size "notes.bundled.size" .notes.bundled.size "supervisor.size" .supervisor.size }}
{{- if not (regexMatch "^[0-9]+[KMGTP]i?$" $size) }}
{{- include "hearth.mistake" (printf "%s is %q: set it to a size such as 10Gi." $path $size) }}
{{- end }}
{{- end }}
{{- range $path, $name := dict "nameOverride" .nameOverride "fullnameOverride" .fullnameOverride }}
{{- if and $name (not (regexMatch "^[a-z]([a-z0-9-]*[a-z0-9])?$" $name)) }}
{{- include "hearth.mistake" (printf "%s is %q: set it to a name of lower-case letters, digits and - such as hearth." $path $name) }}
{{- end }}
{{- end }}
{{- range $path, $text := dict "gatewayConfig" .gatewayConfig "supervisorConfig" .supervisorConfig }}
{{- $error := dig "Error" "" (default "{}" $text | fromYaml) }}
{{- if $error }}
{{- include "hearth.mistake" (printf "%s is not a YAML mapping (%s): fix the file that --set-file names." $path $error) }}
{{- end }}
{{- end }}
{{- range $path, $url := dict "localRunnerA" .localRunnerA "localRunnerB" .localRunnerB }}
{{- if and $url (not (regexMatch "^https?://[^/]+" $url)) }}
{{- include "hearth.mistake" (printf "%s is %q: set it to an address such as http://192.168.1.10:11434." $path $url) }}
{{- end }}
{{- end }}
{{- include "hearth.secretMistakes" . }}
{{- include "hearth.gatewayMistakes" $root }}
{{- /* With less, the kernel ends them while they start, again and again. */}}
{{- include "hearth.memoryMistake" (list "gateway.resources" .gateway.resources 192) }}
{{- include "hearth.memoryMistake" (list "supervisor.resources" .supervisor.resources 128) }}
{{- include "hearth.environmentMistakes" (list "gateway.env" .gateway.env "providerKeys") }}
{{- include "hearth.environmentMistakes" (list "supervisor.env" .supervisor.env "alertSecrets") }}
{{- include "hearth.postgresMistakes" . }}
{{- include "hearth.passwordMistakes" $root }}
{{- include "hearth.identityMistakes" $root }}
{{- include "hearth.redisMistakes" . }}
{{- include "hearth.notesMistakes" . }}
{{- include "hearth.edgeMistakes" . }}
{{- include "hearth.existingSecretMistakes" $root }}
{{- end }}
{{- end }}

{{- define "hearth.mistake" }}
- {{ . }}
{{- end }}

{{- define "hearth.durationMistake" -}}
{{- if not (regexMatch "^[0-9]+[smh]$" (index . 1)) }}
{{- include "hearth.mistake" (printf "%s is %q: set it to a duration such as 120s, 2m or 1h." (index . 0) (index . 1)) }}
{{- end }}
{{- end }}

{{/* Takes (list PATH RESOURCES MIB), where MIB is the minimum of a memory limit; none is accepted. */}}
{{- define "hearth.memoryMistake" -}}
{{- $limit := dig "limits" "memory" "" (default (dict) (index . 1)) | toString }}
{{- $bytes := dict "m" 0.001 "" 1 "k" 1000 "Ki" 1024 "M" 1000000 "Mi" 1048576 "G" 1000000000 "Gi" 1073741824 }}
{{- $unit := regexFind "[A-Za-z]*$" $limit }}
{{- if and $limit (hasKey $bytes $unit) }}
{{- if lt (mulf (trimSuffix $unit $limit | float64) (index $bytes $unit)) (mulf (index . 2) 1048576) }}
{{- include "hearth.mistake" (printf "%s.limits.memory is %s: set it to at least %dMi, or the pod is killed while it starts." (index . 0) $limit (index . 2)) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "hearth.imageMistakes" -}}
{{- $images := .images }}
{{- range list "gateway" "supervisor" "couchdb" "postgres" "redis" }}
{{- $image := index $images . }}
{{- if not $image.repository }}
{{- include "hearth.mistake" (printf "images.%s.repository is empty: set it to an image such as registry.example.org/hearth/%s (npm run images builds Hearth's own)." . .) }}
{{- end }}
{{- if and (not $image.tag) (has . (list "couchdb" "postgres" "redis")) }}
{{- include "hearth.mistake" (printf "images.%s.tag is empty: set the version of the image, best with its digest (TAG@sha256:DIGEST)." .) }}
{{- end }}
{{- if contains "@" (default "" $image.repository) }}
{{- include "hearth.mistake" (printf "images.%s.repository contains a digest: put it into images.%s.tag as TAG@sha256:DIGEST." . .) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "hearth.secretMistakes" -}}
{{- $values := . }}
{{- range list "masterKey" "saltKey" "metricsKey" "operatorPassword" "notesAdminPassword" "notesCookieSecret" }}
{{- $value := index $values . }}
{{- if and $value $values.existingSecret }}
{{- include "hearth.mistake" (printf "%s and existingSecret are both set: remove %s, or remove existingSecret and let the chart create the Secret." . .) }}
{{- else if and (eq . "notesAdminPassword") (eq $values.notes.mode "external") }}
{{- else if and $value (not (regexMatch "^[A-Za-z0-9_-]{20,}$" $value)) }}
{{- include "hearth.mistake" (printf "%s must be at least 20 letters, digits, - and _: create one with `openssl rand -hex 24`, or leave it empty to have it generated." .) }}
{{- end }}
{{- end }}
{{- range $name, $value := dict "postgres.passwords.superuser" .postgres.passwords.superuser "postgres.passwords.gateway" .postgres.passwords.gateway "postgres.passwords.supervisor" .postgres.passwords.supervisor "postgres.passwords.backup" .postgres.passwords.backup "redis.password" .redis.password }}
{{- if and $value (not (regexMatch "^[A-Za-z0-9_-]{20,}$" $value)) }}
{{- include "hearth.mistake" (printf "%s must be at least 20 letters, digits, - and _ (it is part of addresses): create one with `openssl rand -hex 24`, or leave it empty to have it generated." $name) }}
{{- end }}
{{- end }}
{{- if and .notesUuid (not (regexMatch "^[0-9a-f]{32}$" .notesUuid)) }}
{{- include "hearth.mistake" "notesUuid must be 32 hexadecimal digits: create it with `openssl rand -hex 16`, or leave it empty to have it generated." }}
{{- end }}
{{- if and .masterKeyPrevious (not (regexMatch "^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9]{2}:[0-9]{2})$" .masterKeyPreviousUntil)) }}
{{- include "hearth.mistake" "masterKeyPrevious requires masterKeyPreviousUntil: set it to the time when the previous key expires, such as 2027-01-31T12:00:00Z." }}
{{- end }}
{{- range list "existingProviderKeys" "existingAlertSecrets" }}
{{- $existing := index $values . }}
{{- if and $existing.secret (not $existing.names) }}
{{- include "hearth.mistake" (printf "%s.secret is set without %s.names: list the keys of the Secret that are used, such as [OPENAI_API_KEY]." . .) }}
{{- else if and $existing.names (not $existing.secret) }}
{{- include "hearth.mistake" (printf "%s.names is set without %s.secret: set the name of the Secret, or remove the names." . .) }}
{{- end }}
{{- end }}
{{- /* Kubernetes rejects pods with two files of one name. */}}
{{- range $path, $names := dict "providerKeys" (keys .providerKeys) "existingProviderKeys.names" .existingProviderKeys.names "alertSecrets" (keys .alertSecrets) "existingAlertSecrets.names" .existingAlertSecrets.names }}
{{- range $names }}
{{- if regexMatch "^(HEARTH_\\w+|NODE_\\w+|PROXY_MASTER_KEY\\w*|REDIS_(URL|PASSWORD|SENTINEL_PASSWORD)|OFFSITE_(IDENTITY|RCLONE_CONFIG)|NOTES_ADMIN_PASSWORD|(SUPERVISOR_|BACKUP_)?DATABASE_(DIRECT_)?URL)$" . }}
{{- include "hearth.mistake" (printf "%s contains %s, a name that Hearth itself uses: choose another." $path .) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $name := .existingProviderKeys.names }}
{{- if hasKey $values.providerKeys $name }}
{{- include "hearth.mistake" (printf "%s is in providerKeys and in existingProviderKeys.names: remove one of them." $name) }}
{{- end }}
{{- end }}
{{- range $name := .existingAlertSecrets.names }}
{{- if hasKey $values.alertSecrets $name }}
{{- include "hearth.mistake" (printf "%s is in alertSecrets and in existingAlertSecrets.names: remove one of them." $name) }}
{{- end }}
{{- end }}
{{- with .offsite }}
{{- if and .target (not .existingSecret) (or (not .identity) (not .rcloneConfig)) }}
{{- include "hearth.mistake" "offsite.target requires offsite.identity and offsite.rcloneConfig: set both (docs/off-site.md), or offsite.existingSecret." }}
{{- end }}
{{- if and .target (not (regexMatch "^[A-Za-z0-9_.+@][A-Za-z0-9_.+@ -]*:" .target)) }}
{{- include "hearth.mistake" "offsite.target must be REMOTE:PATH, with a remote of offsite.rcloneConfig and without its options: passwords in it would be shown." }}
{{- end }}
{{- end }}
{{- end }}

{{/* Takes (list PATH VARIABLES SECRETS), where SECRETS is the value for secrets. */}}
{{- define "hearth.environmentMistakes" -}}
{{- $path := index . 0 }}
{{- $secrets := index . 2 }}
{{- range $name, $_ := index . 1 }}
{{- if regexMatch "(KEY|PASSWORD|SECRET|TOKEN)$" $name }}
{{- include "hearth.mistake" (printf "%s.%s looks like a secret, and environment values can be read by everyone who sees the pod: put it into %s, which becomes a file." $path $name $secrets) }}
{{- else if regexMatch "^(HEARTH|DATABASE|SUPERVISOR|BACKUP|REDIS|NOTES|GATEWAY|LOCAL_RUNNER|PROXY_MASTER_KEY|OFFSITE)_" $name }}
{{- include "hearth.mistake" (printf "%s.%s is a variable that the chart sets: use the chart's own value for it (README.md has all of them)." $path $name) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "hearth.gatewayMistakes" -}}
{{- $layer := include "hearth.gatewayLayer" . | fromYaml }}
{{- with .Values }}
{{- if hasKey $layer "Error" }}
{{- include "hearth.mistake" (printf "gatewayLocalConfig is not a YAML mapping (%s): fix the file that --set-file names." $layer.Error) }}
{{- else if and $layer.general_settings (not (kindIs "map" $layer.general_settings)) }}
{{- include "hearth.mistake" "gatewayLocalConfig.general_settings is not a mapping: write its settings as NAME: VALUE below it." }}
{{- else if and $layer.model_list (not (kindIs "slice" $layer.model_list)) }}
{{- include "hearth.mistake" "gatewayLocalConfig.model_list is not a list: write each model as an entry with model_name and provider_params." }}
{{- else if hasKey (default (dict) $layer.general_settings) "drain_timeout" }}
{{- include "hearth.mistake" "gatewayLocalConfig sets general_settings.drain_timeout: set drainTimeout instead, which also decides when Kubernetes kills the pod." }}
{{- end }}
{{- if le (include "hearth.seconds" .drainNotice | atoi) 2 }}
{{- if regexMatch "^[0-9]+[smh]$" .drainNotice }}
{{- include "hearth.mistake" (printf "drainNotice is %s: set it to more than 2s, so that connections which are kept alive end before the gateway stops." .drainNotice) }}
{{- end }}
{{- end }}
{{- if and (regexMatch "^[0-9]+[smh]$" .drainTimeout) (lt (include "hearth.seconds" .drainTimeout | atoi) 1) }}
{{- include "hearth.mistake" (printf "drainTimeout is %s: set it to at least 1s, or every running call is cut off." .drainTimeout) }}
{{- end }}
{{- if and (regexMatch "^[0-9]+[smh]$" .endpointDelay) (lt (include "hearth.seconds" .endpointDelay | atoi) 1) }}
{{- include "hearth.mistake" (printf "endpointDelay is %s: set it to at least 1s, so that load balancers notice that a gateway is leaving." .endpointDelay) }}
{{- end }}
{{- with .gateway }}
{{- if lt (int .replicas) 1 }}
{{- include "hearth.mistake" (printf "gateway.replicas is %d: set it to at least 1." (int .replicas)) }}
{{- end }}
{{- if lt (int .databasePoolSize) 2 }}
{{- include "hearth.mistake" (printf "gateway.databasePoolSize is %d: set it to at least 2." (int .databasePoolSize)) }}
{{- end }}
{{- if and .service.nodePort (ne .service.type "NodePort") }}
{{- include "hearth.mistake" (printf "gateway.service.nodePort is set, but gateway.service.type is %s: set the type to NodePort, or remove the port." .service.type) }}
{{- end }}
{{- with .autoscaling }}
{{- if .enabled }}
{{- if lt (int .minReplicas) 1 }}
{{- include "hearth.mistake" (printf "gateway.autoscaling.minReplicas is %d: set it to at least 1." (int .minReplicas)) }}
{{- end }}
{{- if lt (int .maxReplicas) (int .minReplicas) }}
{{- include "hearth.mistake" (printf "gateway.autoscaling.maxReplicas (%d) is less than minReplicas (%d): raise it." (int .maxReplicas) (int .minReplicas)) }}
{{- end }}
{{- if not (or .targetCpuPercent .targetCallsInFlight) }}
{{- include "hearth.mistake" "gateway.autoscaling is enabled without a target: set gateway.autoscaling.targetCpuPercent or targetCallsInFlight." }}
{{- end }}
{{- end }}
{{- end }}
{{- if and .autoscaling.enabled .autoscaling.targetCpuPercent (not (dig "requests" "cpu" "" (default (dict) .resources))) }}
{{- include "hearth.mistake" "gateway.autoscaling.targetCpuPercent is a share of gateway.resources.requests.cpu: set that request." }}
{{- end }}
{{- end }}
{{- end }}
{{- if and (eq .Values.redis.mode "none") (include "hearth.manyGateways" .) }}
{{- include "hearth.mistake" (printf "redis.mode is none, but there may be more than one gateway: set redis.mode to bundled or external, or gateway.replicas to 1 without autoscaling.") }}
{{- end }}
{{- end }}

{{- define "hearth.postgresMistakes" -}}
{{- $passwords := .postgres.passwords }}
{{- with .postgres }}
{{- $mode := .mode }}
{{- $given := list }}
{{- range list "databaseUrl" "databaseDirectUrl" "supervisorDatabaseUrl" "backupDatabaseUrl" "existingSecret" "caSecret" }}
{{- if index $.postgres.external . }}{{ $given = append $given (printf "postgres.external.%s" .) }}{{ end }}
{{- end }}
{{- if and (ne $mode "external") $given }}
{{- include "hearth.mistake" (printf "%s is set, but postgres.mode is %s: set postgres.mode to external to use your own Postgres, or remove it." (join " and " $given) $mode) }}
{{- end }}
{{- if eq $mode "external" }}
{{- with .external }}
{{- if and (not .databaseUrl) (not .existingSecret) }}
{{- include "hearth.mistake" "postgres.mode is external without an address: set postgres.external.databaseUrl, or postgres.external.existingSecret to a Secret with DATABASE_URL." }}
{{- end }}
{{- if and .existingSecret (or .databaseUrl .databaseDirectUrl .supervisorDatabaseUrl .backupDatabaseUrl) }}
{{- include "hearth.mistake" "postgres.external.existingSecret and addresses in postgres.external are both set: remove the addresses, or existingSecret." }}
{{- end }}
{{- if and .existingSecret (not (has "DATABASE_URL" .keys)) }}
{{- include "hearth.mistake" "postgres.external.keys lacks DATABASE_URL: add it, the gateways need it." }}
{{- end }}
{{- $urls := . }}
{{- range list "databaseUrl" "databaseDirectUrl" "supervisorDatabaseUrl" "backupDatabaseUrl" }}
{{- $url := index $urls . }}
{{- if and $url (not (regexMatch "^postgres(ql)?://[^/@]+@[^/]+/.+" $url)) }}
{{- include "hearth.mistake" (printf "postgres.external.%s is not an address of Postgres: set it to one such as postgresql://user:password@host:5432/hearth." .) }}
{{- end }}
{{- end }}
{{- end }}
{{- if or $passwords.superuser $passwords.gateway $passwords.supervisor $passwords.backup $passwords.existingSecret }}
{{- include "hearth.mistake" "postgres.passwords has no effect with postgres.mode external: remove it; the addresses contain the passwords." }}
{{- end }}
{{- end }}
{{- if and $passwords.existingSecret (or $passwords.superuser $passwords.gateway $passwords.supervisor $passwords.backup) }}
{{- include "hearth.mistake" "postgres.passwords.existingSecret and passwords in postgres.passwords are both set: remove the passwords, or existingSecret." }}
{{- end }}
{{- $logins := values .cluster.existingLogins | compact }}
{{- if and $passwords.existingSecret (eq $mode "cluster") (lt (len $logins) 3) }}
{{- include "hearth.mistake" "postgres.passwords.existingSecret requires all of postgres.cluster.existingLogins: name the Secrets with which CloudNativePG creates the roles." }}
{{- end }}
{{- if and $logins (or (not $passwords.existingSecret) (ne $mode "cluster")) }}
{{- include "hearth.mistake" "postgres.cluster.existingLogins is set without postgres.passwords.existingSecret and postgres.mode cluster: set both, or remove it." }}
{{- end }}
{{- if eq $mode "cluster" }}
{{- if lt (int .cluster.instances) 1 }}
{{- include "hearth.mistake" (printf "postgres.cluster.instances is %d: set it to at least 1; three survive the loss of a node." (int .cluster.instances)) }}
{{- end }}
{{- if and .cluster.parameters (dig "postgresql" "parameters" "" .cluster.spec) }}
{{- include "hearth.mistake" "postgres.cluster.parameters and postgres.cluster.spec.postgresql.parameters are both set: move the latter to the former." }}
{{- end }}
{{- end }}
{{- if and (eq $mode "bundled") (lt (include "hearth.memoryMiB" .bundled.resources | atoi) 64) }}
{{- include "hearth.mistake" "postgres.bundled.resources.limits.memory must be at least 64Mi, in Mi or Gi: Postgres' buffers are sized by it." }}
{{- end }}
{{- end }}
{{- end }}

{{/* The bundled Postgres reads the passwords of its roles only once; what it has is in the Secret. Only a cluster can tell. */}}
{{- define "hearth.passwordMistakes" -}}
{{- if eq .Values.postgres.mode "bundled" }}
{{- $name := printf "%s-database" (include "hearth.fullname" .) }}
{{- $data := dig "data" (dict) (lookup "v1" "Secret" .Release.Namespace $name | default (dict)) }}
{{- $passwords := .Values.postgres.passwords }}
{{- range $value, $role := dict "superuser" "postgres" "gateway" "gateway_a" "supervisor" "supervisor" "backup" "backup" }}
{{- $key := printf "%s_PASSWORD" (ternary "POSTGRES" (upper $value) (eq $value "superuser")) }}
{{- $given := index $passwords $value }}
{{- if and $given (hasKey $data $key) (ne $given (index $data $key | default "" | b64dec)) }}
{{- include "hearth.mistake" (printf "postgres.passwords.%s is not the password that the role %s has: change it there (ALTER ROLE %s PASSWORD …) and in %s of the Secret %s first, or remove the value." $value $role $role $key $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Values that must stay as they were installed; only a cluster can tell. */}}
{{- define "hearth.identityMistakes" -}}
{{- $fullname := include "hearth.fullname" . }}
{{- $name := include "hearth.name" . }}
{{- $release := .Release.Name }}
{{- $sets := lookup "apps/v1" "StatefulSet" .Release.Namespace "" | default (dict) }}
{{- range dig "items" (list) $sets }}
{{- $labels := default (dict) .metadata.labels }}
{{- $isOurs := and (eq (dig "app.kubernetes.io/instance" "" $labels) $release) (hasPrefix "hearth-" (dig "helm.sh/chart" "" $labels)) (eq (dig "app.kubernetes.io/component" "" $labels) "gateway") }}
{{- $before := dig "app.kubernetes.io/name" "" $labels }}
{{- if and $isOurs (or (ne .metadata.name (printf "%s-gateway" $fullname)) (ne $before $name)) }}
{{- include "hearth.mistake" (printf "the objects of this release would be named %s instead of %s, with empty volumes and new secrets: set nameOverride and fullnameOverride back as they were." $fullname (trimSuffix "-gateway" .metadata.name)) }}
{{- end }}
{{- end }}
{{- $salt := dig "data" "HEARTH_SALT_KEY" "" (lookup "v1" "Secret" .Release.Namespace $fullname | default (dict)) | b64dec }}
{{- if and .Values.saltKey $salt (ne .Values.saltKey $salt) }}
{{- include "hearth.mistake" (printf "saltKey is not HEARTH_SALT_KEY of the Secret %s, by which the credentials in Postgres are encrypted: set it to that, or leave it empty." $fullname) }}
{{- end }}
{{- $notes := printf "%s-notes" $fullname }}
{{- $uuid := dig "data" "NOTES_UUID" "" (lookup "v1" "ConfigMap" .Release.Namespace $notes | default (dict)) }}
{{- if and .Values.notesUuid $uuid (ne .Values.notesUuid $uuid) }}
{{- include "hearth.mistake" (printf "notesUuid is %s, but NOTES_UUID of the ConfigMap %s is %s, and with another one every device syncs all notes again: set it to that, or leave it empty." .Values.notesUuid $notes $uuid) }}
{{- end }}
{{- end }}

{{- define "hearth.redisMistakes" -}}
{{- with .redis }}
{{- $mode := .mode }}
{{- $given := list }}
{{- with .external }}
{{- if .url }}{{ $given = append $given "redis.external.url" }}{{ end }}
{{- if .host }}{{ $given = append $given "redis.external.host" }}{{ end }}
{{- if .sentinels }}{{ $given = append $given "redis.external.sentinels" }}{{ end }}
{{- if and .existingSecret (has "REDIS_URL" .keys) }}{{ $given = append $given "REDIS_URL of redis.external.existingSecret" }}{{ end }}
{{- end }}
{{- if and (ne $mode "external") $given }}
{{- include "hearth.mistake" (printf "%s is set, but redis.mode is %s: set redis.mode to external to use your own Redis, or remove it." (join " and " $given) $mode) }}
{{- end }}
{{- if and (eq $mode "external") (not $given) }}
{{- include "hearth.mistake" "redis.mode is external without an address: set one of redis.external.url, host and sentinels, or redis.external.existingSecret to a Secret with REDIS_URL." }}
{{- end }}
{{- if and (eq $mode "external") (gt (len $given) 1) }}
{{- include "hearth.mistake" (printf "%s are all set: keep one of them." (join " and " $given)) }}
{{- end }}
{{- if and (eq $mode "external") .external.url (not (regexMatch "^rediss?://.+" .external.url)) }}
{{- include "hearth.mistake" "redis.external.url is not an address of Redis: set it to one such as rediss://user:password@host:6379/0." }}
{{- end }}
{{- if and .external.existingSecret (or .external.url .external.password .external.sentinelPassword) }}
{{- include "hearth.mistake" "redis.external.existingSecret and url, password or sentinelPassword are both set: remove the values, or existingSecret." }}
{{- end }}
{{- if and .bundled.existingSecret (or .password (ne $mode "bundled")) }}
{{- include "hearth.mistake" "redis.bundled.existingSecret is for the bundled Redis, in place of redis.password: remove one of them, or set redis.mode to bundled." }}
{{- end }}
{{- if and (ne $mode "bundled") .password }}
{{- include "hearth.mistake" (printf "redis.password is the one of the bundled Redis, but redis.mode is %s: set redis.external.password instead." $mode) }}
{{- end }}
{{- if and (eq $mode "bundled") (lt (include "hearth.memoryMiB" .bundled.resources | atoi) 64) }}
{{- include "hearth.mistake" "redis.bundled.resources.limits.memory must be at least 64Mi, in Mi or Gi: maxmemory is 70 % of it." }}
{{- end }}
{{- end }}
{{- end }}

{{- define "hearth.notesMistakes" -}}
{{- with .notes }}
{{- if and (eq .mode "external") (not (regexMatch "^https?://[^/]+" .external.url)) }}
{{- include "hearth.mistake" "notes.mode is external without an address: set notes.external.url to one such as http://couchdb.notes:5984." }}
{{- end }}
{{- if and (ne .mode "external") .external.url }}
{{- include "hearth.mistake" (printf "notes.external.url is set, but notes.mode is %s: set notes.mode to external, or remove the address." .mode) }}
{{- end }}
{{- end }}
{{- if and (eq .notes.mode "external") (not .existingSecret) (not .notesAdminPassword) }}
{{- include "hearth.mistake" "notes.mode is external without the password of its user admin: set notesAdminPassword." }}
{{- end }}
{{- if and .edge.notesHostname (ne .notes.mode "bundled") }}
{{- include "hearth.mistake" (printf "edge.notesHostname is set, but notes.mode is %s, so that there is nothing to route to: remove it, or set notes.mode to bundled." .notes.mode) }}
{{- end }}
{{- end }}

{{- define "hearth.edgeMistakes" -}}
{{- $edge := .edge }}
{{- range list "hostname" "notesHostname" "supervisorHostname" }}
{{- $name := index $edge . }}
{{- if and $name (not (regexMatch "^([a-z0-9]([a-z0-9-]*[a-z0-9])?\\.)+[a-z][a-z0-9-]*[a-z0-9]$" $name)) }}
{{- include "hearth.mistake" (printf "edge.%s is %q: set it to a host name such as hearth.example.org." . $name) }}
{{- end }}
{{- end }}
{{- if and .ingress.enabled (not (or $edge.hostname $edge.notesHostname $edge.supervisorHostname)) }}
{{- include "hearth.mistake" "ingress.enabled is true without a host name: set edge.hostname (and edge.notesHostname for the notes)." }}
{{- end }}
{{- if .httpRoute.enabled }}
{{- if not (or $edge.hostname $edge.notesHostname $edge.supervisorHostname) }}
{{- include "hearth.mistake" "httpRoute.enabled is true without a host name: set edge.hostname (and edge.notesHostname for the notes)." }}
{{- end }}
{{- if not .httpRoute.parentRefs }}
{{- include "hearth.mistake" "httpRoute.enabled is true without a Gateway: set httpRoute.parentRefs, such as [{name: public, namespace: gateways}]." }}
{{- end }}
{{- end }}
{{- if and $edge.supervisorHostname (not .supervisor.enabled) }}
{{- include "hearth.mistake" "edge.supervisorHostname is set, but supervisor.enabled is false: remove one of them." }}
{{- end }}
{{- if and .networkPolicy.prometheus (not .networkPolicy.clients) }}
{{- include "hearth.mistake" "networkPolicy.prometheus has no effect without networkPolicy.clients, which allows all: set clients too, or remove it." }}
{{- end }}
{{- end }}

{{/* Keys that an existing Secret lacks; only a cluster can tell. */}}
{{- define "hearth.existingSecretMistakes" -}}
{{- $root := . }}
{{- $sources := concat (include "hearth.gatewaySecrets" . | fromYamlArray) (include "hearth.supervisorSecrets" . | fromYamlArray) }}
{{- if eq .Values.notes.mode "bundled" }}{{ $sources = concat $sources (include "hearth.notesSecrets" . | fromYamlArray) }}{{ end }}
{{- $existing := list .Values.existingSecret .Values.postgres.passwords.existingSecret .Values.redis.bundled.existingSecret .Values.postgres.external.existingSecret .Values.redis.external.existingSecret .Values.existingProviderKeys.secret .Values.existingAlertSecrets.secret .Values.offsite.existingSecret | compact }}
{{- $missing := list }}
{{- range $source := $sources }}
{{- if has .secret $existing }}
{{- $found := lookup "v1" "Secret" $root.Release.Namespace .secret }}
{{- range .names }}
{{- if and $found (not (hasKey (default (dict) $found.data) .)) }}
{{- $missing = append $missing (printf "the Secret %s lacks the key %s: add it." $source.secret .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- range uniq $missing }}
{{- include "hearth.mistake" . }}
{{- end }}
{{- end }}
