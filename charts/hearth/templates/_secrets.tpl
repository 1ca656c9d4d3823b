{{/*
Secrets reach programs as files: each is a key of a Secret, named after its variable, and NAME_FILE points to the file. The lists
below say which ones a component gets: [{secret: SECRET, names: [NAME]}].
*/}}
{{- define "hearth.stackSecret" -}}
{{- default (include "hearth.fullname" .) .Values.existingSecret -}}
{{- end }}

{{- define "hearth.databaseSecret" -}}
{{- $own := printf "%s-database" (include "hearth.fullname" .) -}}
{{- with .Values.postgres }}{{ default $own (ternary .external.existingSecret .passwords.existingSecret (eq .mode "external")) }}{{ end -}}
{{- end }}

{{- define "hearth.redisSecret" -}}
{{- $own := printf "%s-redis" (include "hearth.fullname" .) -}}
{{- with .Values.redis }}{{ default $own (ternary .external.existingSecret .bundled.existingSecret (eq .mode "external")) }}{{ end -}}
{{- end }}

{{/* The addresses of the database that exist, separated by spaces. */}}
{{- define "hearth.databaseNames" -}}
{{- with .Values.postgres -}}
{{- if ne .mode "external" -}}
DATABASE_URL SUPERVISOR_DATABASE_URL BACKUP_DATABASE_URL
{{- else if .external.existingSecret -}}
{{ join " " .external.keys }}
{{- else -}}
DATABASE_URL
{{- if .external.databaseDirectUrl }} DATABASE_DIRECT_URL{{ end }}
{{- if .external.supervisorDatabaseUrl }} SUPERVISOR_DATABASE_URL{{ end }}
{{- if .external.backupDatabaseUrl }} BACKUP_DATABASE_URL{{ end }}
{{- end -}}
{{- end -}}
{{- end }}

{{/* The Secret by which CloudNativePG knows the password of a role; takes (list ROOT LOGIN). */}}
{{- define "hearth.clusterLogin" -}}
{{- $root := index . 0 -}}
{{- default (printf "%s-postgres-%s" (include "hearth.fullname" $root) (index . 1)) (index $root.Values.postgres.cluster.existingLogins (index . 1)) -}}
{{- end }}

{{/* The secrets of Redis that exist, separated by spaces. */}}
{{- define "hearth.redisNames" -}}
{{- with .Values.redis -}}
{{- if eq .mode "bundled" -}}
REDIS_PASSWORD
{{- else if eq .mode "external" -}}
{{- if .external.existingSecret -}}
{{ join " " .external.keys }}
{{- else -}}
{{- if .external.url }} REDIS_URL{{ end }}
{{- if .external.password }} REDIS_PASSWORD{{ end }}
{{- if .external.sentinelPassword }} REDIS_SENTINEL_PASSWORD{{ end }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* Those of NAMES (separated by spaces) that are among ALLOWED; takes (list NAMES ALLOWED). */}}
{{- define "hearth.among" -}}
{{- $allowed := index . 1 -}}
{{- $names := list -}}
{{- range splitList " " (trim (index . 0)) }}{{ if has . $allowed }}{{ $names = append $names . }}{{ end }}{{ end -}}
{{- toJson $names -}}
{{- end }}

{{/* An entry of the lists, unless there are no names; takes (list SECRET NAMES). */}}
{{- define "hearth.source" -}}
{{- if index . 1 }}
- {{ dict "secret" (index . 0) "names" (index . 1) | toJson }}
{{- end }}
{{- end }}

{{/* Secrets given in the values, and those of an existing Secret; takes (list ROOT VALUE EXISTING SUFFIX). */}}
{{- define "hearth.ownAndExisting" -}}
{{- $root := index . 0 }}
{{- $own := index $root.Values (index . 1) }}
{{- $existing := index $root.Values (index . 2) }}
{{- include "hearth.source" (list (printf "%s-%s" (include "hearth.fullname" $root) (index . 3)) (keys $own | sortAlpha)) }}
{{- if $existing.secret }}{{ include "hearth.source" (list $existing.secret $existing.names) }}{{ end }}
{{- end }}

{{- define "hearth.gatewaySecrets" -}}
{{- $stack := list "HEARTH_METRICS_KEY" "HEARTH_SALT_KEY" "PROXY_MASTER_KEY" }}
{{- include "hearth.source" (list (include "hearth.stackSecret" .) $stack) }}
{{- if .Values.masterKeyPrevious }}{{ include "hearth.source" (list (printf "%s-previous" (include "hearth.fullname" .)) (list "PROXY_MASTER_KEY_PREVIOUS")) }}{{ end }}
{{- include "hearth.gatewayDatabase" (list . (include "hearth.databaseSecret" .)) }}
{{- include "hearth.source" (list (include "hearth.redisSecret" .) (splitList " " (trim (include "hearth.redisNames" .)) | compact)) }}
{{- include "hearth.ownAndExisting" (list . "providerKeys" "existingProviderKeys" "providers") }}
{{- end }}

{{/* The gateways' addresses of the database, in SECRET; takes (list ROOT SECRET). */}}
{{- define "hearth.gatewayDatabase" -}}
{{- $names := include "hearth.among" (list (include "hearth.databaseNames" (index . 0)) (list "DATABASE_URL" "DATABASE_DIRECT_URL")) | fromJsonArray }}
{{- include "hearth.source" (list (index . 1) $names) }}
{{- end }}

{{/*
Not empty if the migration has a Secret of its own: helm updates the Secret of the chart after the migration, so that it has the addresses
of the previous revision. With a Cluster those are right: CloudNativePG changes the passwords of its roles after the upgrade.
*/}}
{{- define "hearth.hasMigrationSecret" -}}
{{- with .Values.postgres }}{{ if and (ne .mode "cluster") (not (ternary .external.existingSecret .passwords.existingSecret (eq .mode "external"))) }}true{{ end }}{{ end -}}
{{- end }}

{{- define "hearth.migrationSecrets" -}}
{{- $own := printf "%s-migration" (include "hearth.fullname" .) }}
{{- include "hearth.gatewayDatabase" (list . (ternary $own (include "hearth.databaseSecret" .) (include "hearth.hasMigrationSecret" . | eq "true"))) }}
{{- end }}

{{/*
Not empty if a Job migrates before an upgrade. A Postgres of this release must be ready: after an installation that failed, it would never
become so, because the Job comes before everything else. Then the gateways migrate.
*/}}
{{- define "hearth.hasMigration" -}}
{{- $postgres := printf "%s-postgres" (include "hearth.fullname" .) }}
{{- $isReady := true }}
{{- if eq .Values.postgres.mode "bundled" }}
{{- $isReady = dig "status" "readyReplicas" 0 (lookup "apps/v1" "StatefulSet" .Release.Namespace $postgres | default (dict)) }}
{{- else if eq .Values.postgres.mode "cluster" }}
{{- $isReady = dig "status" "readyInstances" 0 (lookup "postgresql.cnpg.io/v1" "Cluster" .Release.Namespace $postgres | default (dict)) }}
{{- end }}
{{- if and .Values.migration.enabled $isReady }}true{{ end -}}
{{- end }}

{{/* The Secret of the migration, before its Job; takes (list ROOT ADDRESSES), where ADDRESSES are YAML. */}}
{{- define "hearth.migrationSecret" }}
{{- $root := index . 0 }}
{{- if and (include "hearth.hasMigration" $root) (include "hearth.hasMigrationSecret" $root) }}
---
apiVersion: v1
kind: Secret
metadata:
  name: {{ include "hearth.fullname" $root }}-migration
  labels:
    {{- include "hearth.labels" (list $root "migration") | nindent 4 }}
  annotations:
    helm.sh/hook: pre-upgrade
    helm.sh/hook-weight: "-1"
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
stringData:
  {{- index . 1 | nindent 2 }}
{{- end }}
{{- end }}

{{- define "hearth.supervisorSecrets" -}}
{{- $stack := list "HEARTH_OPERATOR_PASSWORD" "PROXY_MASTER_KEY" }}
{{- if ne .Values.notes.mode "none" }}{{ $stack = append $stack "NOTES_ADMIN_PASSWORD" }}{{ end }}
{{- include "hearth.source" (list (include "hearth.stackSecret" .) $stack) }}
{{- $names := include "hearth.among" (list (include "hearth.databaseNames" .) (list "SUPERVISOR_DATABASE_URL" "BACKUP_DATABASE_URL")) | fromJsonArray }}
{{- include "hearth.source" (list (include "hearth.databaseSecret" .) $names) }}
{{- include "hearth.source" (list (include "hearth.redisSecret" .) (splitList " " (trim (include "hearth.redisNames" .)) | compact)) }}
{{- include "hearth.ownAndExisting" (list . "alertSecrets" "existingAlertSecrets" "alerts") }}
{{- if .Values.offsite.target }}
{{- include "hearth.source" (list (default (printf "%s-offsite" (include "hearth.fullname" .)) .Values.offsite.existingSecret) (list "OFFSITE_IDENTITY" "OFFSITE_RCLONE_CONFIG")) }}
{{- end }}
{{- end }}

{{- define "hearth.notesSecrets" -}}
{{- include "hearth.source" (list (include "hearth.stackSecret" .) (list "NOTES_ADMIN_PASSWORD" "NOTES_COOKIE_SECRET")) }}
{{- end }}

{{/* NAME_FILE for each; takes the list as YAML. */}}
{{- define "hearth.secretEnv" -}}
{{- range fromYamlArray . }}
{{- range .names }}
- name: {{ . }}_FILE
  value: /run/hearth/{{ . }}
{{- end }}
{{- end }}
{{- end }}

{{/* The volume with the files; takes the list as YAML. */}}
{{- define "hearth.secretVolume" -}}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- range fromYamlArray . }}
      - secret:
          name: {{ .secret }}
          items:
            {{- range .names }}
            - { key: {{ . }}, path: {{ . }} }
            {{- end }}
      {{- end }}
{{- end }}

{{/* Variables of Redis without secrets, for the gateways and the supervisor. */}}
{{- define "hearth.redisEnv" -}}
{{- if eq .Values.redis.mode "bundled" }}
- name: REDIS_HOST
  value: {{ include "hearth.fullname" . }}-redis
{{- else if eq .Values.redis.mode "external" }}
{{- with .Values.redis.external }}
{{- if .host }}
- name: REDIS_HOST
  value: {{ .host | quote }}
- name: REDIS_PORT
  value: {{ .port | quote }}
{{- end }}
{{- if .sentinels }}
- name: REDIS_SENTINELS
  value: {{ join "," .sentinels | quote }}
- name: REDIS_MASTER_NAME
  value: {{ .masterName | quote }}
{{- end }}
{{- with .username }}
- name: REDIS_USERNAME
  value: {{ . | quote }}
{{- end }}
{{- with .sentinelUsername }}
- name: REDIS_SENTINEL_USERNAME
  value: {{ . | quote }}
{{- end }}
{{- if .database }}
- name: REDIS_DB
  value: {{ .database | quote }}
{{- end }}
{{- if .tls }}
- name: REDIS_TLS
  value: "true"
{{- end }}
{{- if .ca }}
- name: REDIS_CA_FILE
  value: /etc/hearth/redis-ca.crt
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The Secret with the authority of Postgres' certificate; empty: none. */}}
{{- define "hearth.postgresCa" -}}
{{- if eq .Values.postgres.mode "cluster" }}{{ include "hearth.fullname" . }}-postgres-ca{{ else if eq .Values.postgres.mode "external" }}{{ .Values.postgres.external.caSecret }}{{ end -}}
{{- end }}

{{- define "hearth.postgresCaMount" -}}
{{- if include "hearth.postgresCa" . }}
- { name: postgres-ca, mountPath: /run/postgres, readOnly: true }
{{- end }}
{{- end }}

{{- define "hearth.postgresCaVolume" -}}
{{- with include "hearth.postgresCa" . }}
- name: postgres-ca
  secret: { secretName: {{ . }}, items: [{ key: ca.crt, path: ca.crt }] }
{{- end }}
{{- end }}

{{/*
A secret of a Secret of the chart: the given value, else the one that the cluster has, else a new one. Takes (dict "root" ROOT
"secret" SECRET "name" NAME "given" VALUE "prefix" TEXT).
*/}}
{{- define "hearth.keptSecret" -}}
{{- $data := dig "data" (dict) (lookup "v1" "Secret" .root.Release.Namespace .secret | default (dict)) -}}
{{- if .given -}}
{{- .given -}}
{{- else if hasKey $data .name -}}
{{- index $data .name | b64dec -}}
{{- else -}}
{{- printf "%s%s" (.prefix | default "") (randAlphaNum 40) -}}
{{- end -}}
{{- end }}
