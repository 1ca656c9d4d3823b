{{/* The stack's own component as a peer. */}}
{{- define "hearth.peer" -}}
podSelector:
  matchLabels:
    {{- include "hearth.selector" . | nindent 4 }}
{{- end }}
{{- define "hearth.policy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "hearth.fullname" (index . 0) }}-{{ index . 1 }}
  labels:
    {{- include "hearth.labels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "hearth.selector" . | nindent 6 }}
{{- end }}
{{- define "hearth.ports" -}}
ports:
  {{- range . }}
  - { protocol: TCP, port: {{ . }} }
  {{- end }}
{{- end }}
{{- define "hearth.dnsRule" -}}
# Names, from wherever the cluster answers them.
- ports: [{ protocol: UDP, port: 53 }, { protocol: TCP, port: 53 }]
{{- end }}
{{/* Ports of addresses, each once: the one that they name, or that of http and https. JSON. */}}
{{- define "hearth.portsOf" -}}
{{- $ports := list -}}
{{- range . -}}
{{- $rest := regexReplaceAll "^[a-z]+://([^/?]*@)?" . "" -}}
{{- $named := regexFind "[0-9]+" (regexFind ":[0-9]+([/?]|$)" $rest) -}}
{{- if $named -}}
{{- $ports = append $ports (atoi $named) -}}
{{- else if hasPrefix "https://" . -}}
{{- $ports = append $ports 443 -}}
{{- else if hasPrefix "http://" . -}}
{{- $ports = append $ports 80 -}}
{{- end -}}
{{- end -}}
{{- toJson (uniq $ports) -}}
{{- end }}

{{/* To Postgres: one in this release, or any address. */}}
{{- define "hearth.postgresRule" -}}
{{- if eq .Values.postgres.mode "bundled" }}
- to:
    - {{- include "hearth.peer" (list . "postgres") | nindent 6 }}
  {{- include "hearth.ports" (list 5432) | nindent 2 }}
{{- else if eq .Values.postgres.mode "cluster" }}
- to:
    - podSelector: { matchLabels: { cnpg.io/cluster: {{ include "hearth.fullname" . }}-postgres } }
  {{- include "hearth.ports" (list 5432) | nindent 2 }}
{{- else }}
{{- with .Values.postgres.external }}
- {{- include "hearth.ports" (concat .ports (include "hearth.portsOf" (list .databaseUrl .databaseDirectUrl .supervisorDatabaseUrl .backupDatabaseUrl) | fromJsonArray) | uniq) | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}

{{- define "hearth.redisRule" -}}
{{- if eq .Values.redis.mode "bundled" }}
- to:
    - {{- include "hearth.peer" (list . "redis") | nindent 6 }}
  {{- include "hearth.ports" (list 6379) | nindent 2 }}
{{- else if eq .Values.redis.mode "external" }}
{{- with .Values.redis.external }}
{{- $sentinels := ternary (list 26379) list (gt (len .sentinels) 0) }}
- {{- include "hearth.ports" (concat (list .port) $sentinels (include "hearth.portsOf" (append .sentinels .url) | fromJsonArray) | uniq) | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}
