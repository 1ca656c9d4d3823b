{{/* Names and labels */}}
{{- define "hearth.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* 40 characters: a StatefulSet's name, with -supervisor and the hash of a revision, is a label, which may have 63. */}}
{{- define "hearth.fullname" -}}
{{- $name := include "hearth.name" . -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end }}

{{/* Takes (list ROOT COMPONENT), as the next two. */}}
{{- define "hearth.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "hearth.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "hearth.labels" -}}
{{- $root := index . 0 -}}
{{ include "hearth.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- end }}

{{/* Without versions: a store must not restart because another component has a new one. */}}
{{- define "hearth.podLabels" -}}
{{ include "hearth.selector" . }}
{{- with (index . 0).Values.podLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Where a component's pods may run; takes its values. */}}
{{- define "hearth.scheduling" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}

{{/* REPOSITORY:TAG; takes (list ROOT IMAGE). */}}
{{- define "hearth.image" -}}
{{- $root := index . 0 -}}
{{- $image := index $root.Values.images (index . 1) -}}
{{- printf "%s:%s" $image.repository (default $root.Chart.AppVersion $image.tag) -}}
{{- end }}

{{- define "hearth.pullSecrets" -}}
{{- with .Values.images.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* What PodSecurity `restricted` requires. The volumes belong to the group of the user that the pod runs as, which it takes. */}}
{{- define "hearth.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ . }}
runAsGroup: {{ . }}
fsGroup: {{ . }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "hearth.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{/* Of durations such as 120s, 2m or 1h; 0 for anything else, which checks.yaml reports. */}}
{{- define "hearth.seconds" -}}
{{- if regexMatch "^[0-9]+[smh]$" (toString .) -}}
{{- $number := atoi (regexFind "^[0-9]+" .) -}}
{{- if hasSuffix "h" . }}{{ mul $number 3600 }}{{ else if hasSuffix "m" . }}{{ mul $number 60 }}{{ else }}{{ $number }}{{ end -}}
{{- else -}}
0
{{- end -}}
{{- end }}

{{/* MiB of the memory limit of some resources; 0 for anything else than Mi and Gi, which checks.yaml reports. */}}
{{- define "hearth.memoryMiB" -}}
{{- $limit := dig "limits" "memory" "" (default (dict) .) | toString -}}
{{- if regexMatch "^[0-9]+Gi$" $limit -}}
{{- mul 1024 (atoi (trimSuffix "Gi" $limit)) -}}
{{- else if regexMatch "^[0-9]+Mi$" $limit -}}
{{- trimSuffix "Mi" $limit -}}
{{- else -}}
0
{{- end -}}
{{- end }}

{{/*
Whether the one pod of a StatefulSet that never became ready is replaced by the next revision: only if Parallel
(https://github.com/kubernetes/kubernetes/issues/67250). An existing one keeps its policy, which cannot be changed; takes
(list ROOT COMPONENT).
*/}}
{{- define "hearth.podManagement" -}}
{{- $root := index . 0 -}}
{{- $existing := lookup "apps/v1" "StatefulSet" $root.Release.Namespace (printf "%s-%s" (include "hearth.fullname" $root) (index . 1)) -}}
podManagementPolicy: {{ dig "spec" "podManagementPolicy" "Parallel" (default (dict) $existing) }}
{{- end }}

{{/* The claim of a StatefulSet's volume; takes its values. */}}
{{- define "hearth.claim" -}}
accessModes: [ReadWriteOnce]
{{- with .storageClass }}
storageClassName: {{ . }}
{{- end }}
resources:
  requests:
    storage: {{ .size }}
{{- end }}

{{/* https://HOST where Ingress or HTTPRoute serve that name, else nothing; takes (list ROOT HOST). */}}
{{- define "hearth.publicUrl" -}}
{{- $root := index . 0 -}}
{{- if and (index . 1) (or $root.Values.ingress.enabled $root.Values.httpRoute.enabled) -}}
{{- $plain := and $root.Values.ingress.enabled (not $root.Values.ingress.tlsSecret) (not $root.Values.httpRoute.enabled) -}}
{{- printf "%s://%s" (ternary "http" "https" $plain) (index . 1) -}}
{{- end -}}
{{- end }}

{{/* Whether gateways may become more than one. */}}
{{- define "hearth.manyGateways" -}}
{{- if or .Values.gateway.autoscaling.enabled (gt (int .Values.gateway.replicas) 1) }}yes{{ end -}}
{{- end }}

{{- define "hearth.postgresAlive" -}}
# Over TCP: during initdb a temporary server listens on the socket only. 1: it does not accept connections yet, as while it replays
# its log after a crash, which a restart would start over.
exec: { command: [sh, -c, 'pg_isready -q -h 127.0.0.1 -U postgres || [ $? -eq 1 ]'] }
{{- end }}

{{- define "hearth.redisProbe" -}}
# From a file through the environment: arguments are visible to every user of the node. On a full disk, PING is answered with
# MISCONF, and with LOADING until all data is read: a restart would not help, and without an endpoint the supervisor could not
# name the cause.
exec: { command: [sh, -c, 'REDISCLI_AUTH="$(cat /run/hearth/REDIS_PASSWORD)" redis-cli ping | grep -qE "PONG|MISCONF|LOADING"'] }
timeoutSeconds: 5
{{- end }}
