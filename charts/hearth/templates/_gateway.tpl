{{/* gatewayLocalConfig as a mapping, whether it is one or a text. */}}
{{- define "hearth.gatewayLayer" -}}
{{- $own := .Values.gatewayLocalConfig -}}
{{- $layer := dict -}}
{{- if kindIs "string" $own }}{{ $layer = fromYaml $own }}{{ else }}{{ $layer = deepCopy $own }}{{ end -}}
{{- toYaml $layer -}}
{{- end }}

{{/* The same with what the chart decides. */}}
{{- define "hearth.gatewaySettings" -}}
{{- $layer := include "hearth.gatewayLayer" . | fromYaml -}}
{{- $general := dict -}}
{{- if kindIs "map" $layer.general_settings }}{{ $general = deepCopy $layer.general_settings }}{{ end -}}
{{- $_ := set $general "drain_timeout" .Values.drainTimeout -}}
{{- if and .Values.edge.trustedProxies (not (hasKey $general "trusted_proxies")) }}{{ $_ := set $general "trusted_proxies" .Values.edge.trustedProxies }}{{ end -}}
{{- $_ := set $layer "general_settings" $general -}}
{{- toYaml $layer -}}
{{- end }}

{{/* Addresses of providers that the values name: of local runners, and every api_base in gatewayLocalConfig; JSON. */}}
{{- define "hearth.providerAddresses" -}}
{{- $addresses := list .Values.localRunnerA .Values.localRunnerB -}}
{{- $layer := include "hearth.gatewayLayer" . | fromYaml -}}
{{- range (ternary $layer.model_list (list) (kindIs "slice" $layer.model_list)) -}}
{{- $params := dict -}}
{{- if kindIs "map" . }}{{ $params = default .litellm_params .provider_params }}{{ end -}}
{{- if kindIs "map" $params }}{{ $addresses = append $addresses (default $params.base_url $params.api_base | toString) }}{{ end -}}
{{- end -}}
{{- toJson $addresses -}}
{{- end }}

{{- define "hearth.gatewayUrl" -}}
http://{{ include "hearth.fullname" . }}-gateway:{{ .Values.gateway.service.port }}
{{- end }}
