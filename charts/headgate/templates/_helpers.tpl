{{- define "headgate.name" -}}
{{ .Values.fullnameOverride | default (printf "%s-operator" (.Release.Name | trunc 40 | trimSuffix "-")) }}
{{- end }}

{{- define "headgate.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "headgate.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "headgate.selector" -}}
app.kubernetes.io/name: headgate
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "headgate.labels" -}}
{{ include "headgate.selector" . }}
app.kubernetes.io/part-of: headgate
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* An image by its digest, else by its tag, else by the chart's appVersion. */ -}}
{{- define "headgate.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end }}
{{- end }}

{{- /* A label selector in the one line that kubectl takes, too. */ -}}
{{- define "headgate.selectorText" -}}
{{- $parts := list }}
{{- range $key, $value := .matchLabels }}
{{- $parts = append $parts (printf "%s=%s" $key $value) }}
{{- end }}
{{- range .matchExpressions }}
{{- if eq .operator "Exists" }}
{{- $parts = append $parts .key }}
{{- else if eq .operator "DoesNotExist" }}
{{- $parts = append $parts (printf "!%s" .key) }}
{{- else }}
{{- $parts = append $parts (printf "%s %s (%s)" .key (lower .operator) (join "," .values)) }}
{{- end }}
{{- end }}
{{- join "," $parts }}
{{- end }}

{{- /* The document of a kind out of a file that controller-gen wrote. */ -}}
{{- define "headgate.document" -}}
{{- range $doc := regexSplit "(?m)^---\n" (.root.Files.Get .file) -1 }}
{{- $o := fromYaml $doc }}
{{- if eq (dig "kind" "" $o) $.kind }}
{{- toYaml $o }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The rules of a role that controller-gen wrote: objects by this release's names, and only what these values need. */ -}}
{{- define "headgate.rules" -}}
{{- $role := fromYaml (include "headgate.document" .) }}
{{- $name := include "headgate.name" .root }}
{{- $values := .root.Values }}
{{- $rules := list }}
{{- range $rule := $role.rules }}
{{- if $rule.resourceNames }}
{{- $names := list }}
{{- range $rule.resourceNames }}
{{- $names = append $names (regexReplaceAll "^headgate-operator" . $name) }}
{{- end }}
{{- $_ := set $rule "resourceNames" $names }}
{{- end }}
{{- if not $values.rollout.enabled }}
{{- if has "apps" $rule.apiGroups }}
{{- $_ := set $rule "verbs" (without $rule.verbs "patch") }}
{{- end }}
{{- if has "pods/eviction" $rule.resources }}
{{- $_ := set $rule "verbs" list }}
{{- end }}
{{- end }}
{{- if $values.certificates.certManager.enabled }}
{{- if has "secrets" $rule.resources }}
{{- $_ := set $rule "verbs" (without $rule.verbs "update") }}
{{- end }}
{{- end }}
{{- if $rule.verbs }}
{{- $rules = append $rules $rule }}
{{- end }}
{{- end }}
{{- toYaml $rules }}
{{- end }}

{{- /* How replicas spread unless values say otherwise. */ -}}
{{- define "headgate.spread" -}}
- {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}
- {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway}
{{- end }}
