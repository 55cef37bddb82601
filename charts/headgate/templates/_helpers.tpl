{{- define "headgate.name" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}-operator
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
