{{- define "asched.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "asched.fullname" -}}
{{- $name := include "asched.name" . -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride }}
{{- else if contains $name .Release.Name }}{{ .Release.Name }}
{{- else }}{{ .Release.Name }}-{{ $name }}
{{- end }}
{{- end }}

{{/* Name of an object of the namespace: (list . "part"), part may be empty. */}}
{{- define "asched.named" -}}
{{- $part := index . 1 -}}
{{- include "asched.fullname" (index . 0) }}{{ if $part }}-{{ $part }}{{ end }}
{{- end }}

{{/* Name of an object of the whole cluster. A namespace has no dot, so no two installations clash. */}}
{{- define "asched.clusterNamed" -}}
{{- include "asched.named" . }}.{{ (index . 0).Release.Namespace }}
{{- end }}

{{- define "asched.selector" -}}
app.kubernetes.io/name: {{ include "asched.name" . | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "asched.labels" -}}
{{ include "asched.selector" . }}
app.kubernetes.io/part-of: asched
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "asched.account" -}}
{{- .Values.serviceAccount.name | default (include "asched.fullname" .) }}
{{- end }}

{{- define "asched.subject" -}}
- kind: ServiceAccount
  name: {{ include "asched.account" . }}
  namespace: {{ .Release.Namespace | quote }}
{{- end }}

{{/* A ClusterRole and its binding to the scheduler's account: (list . "part" rules). */}}
{{- define "asched.clusterRole" -}}
{{- $top := index . 0 -}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ include "asched.clusterNamed" . }}
  labels: {{- include "asched.labels" $top | nindent 4 }}
rules: {{- toYaml (index . 2) | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ include "asched.clusterNamed" . }}
  labels: {{- include "asched.labels" $top | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ include "asched.clusterNamed" . }}
subjects: {{- include "asched.subject" $top | nindent 2 }}
{{ end }}

{{/* The document of .Values.config, checked. */}}
{{- define "asched.document" -}}
{{- $config := .Values.config -}}
{{- if kindIs "string" $config }}{{ $config = fromYaml $config }}{{ end -}}
{{- if ne (toString $config.kind) "KubeSchedulerConfiguration" -}}
{{- fail (printf "config: no KubeSchedulerConfiguration: %s" ($config.Error | default (printf "its kind is %v" $config.kind))) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end }}

{{/* The scheduler names that are served, as {"names": [...]}. */}}
{{- define "asched.schedulers" -}}
{{- $names := list .Values.schedulerName -}}
{{- if .Values.shadow.enabled }}{{ $names = list .Values.shadow.schedulerName }}{{ end -}}
{{- if .Values.config -}}
{{- $names = list -}}
{{- $profiles := (include "asched.document" . | fromYaml).profiles | default (list dict) -}}
{{- range $profiles }}{{ $names = append $names (.schedulerName | default "default-scheduler") }}{{ end -}}
{{- end -}}
{{- if and (has "default-scheduler" $names) (not .Values.shadow.enabled) (not .Values.allowDefaultScheduler) -}}
{{- fail "a profile serves default-scheduler, as the cluster's own scheduler does: give it another schedulerName, or set shadow.enabled=true to compare only, or allowDefaultScheduler=true where kube-scheduler does not run" -}}
{{- end -}}
{{- toJson (dict "names" $names) -}}
{{- end }}

{{- define "asched.lease" -}}
{{- if .Values.leaseName }}{{ .Values.leaseName }}
{{- else if and .Values.config (not .Values.shadow.enabled) }}{{ first (include "asched.schedulers" . | fromJson).names }}
{{- else }}{{ .Values.schedulerName }}
{{- end }}
{{- end }}

{{/* The Leases that the scheduler holds, as JSON: with poolLeases one for each pool as well. */}}
{{- define "asched.leases" -}}
{{- $lease := include "asched.lease" . -}}
{{- $leases := list $lease -}}
{{- if .Values.config -}}
{{- $config := include "asched.document" . | fromYaml -}}
{{- if $config.poolLeases -}}
{{- range append ($config.pools | default list) (dict "name" "default") -}}
{{- $leases = append $leases (printf "%s-pool-%s" $lease .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $leases -}}
{{- end }}

{{/* The text of the configuration file. */}}
{{- define "asched.config" -}}
{{- if kindIs "string" .Values.config }}{{ .Values.config }}
{{- else if .Values.config }}{{ include "asched.document" . }}
{{- else -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
{{- if not .Values.shadow.enabled }}
leaderElection:
  resourceName: {{ include "asched.lease" . | quote }}
{{- end }}
profiles:
  {{- range (include "asched.schedulers" . | fromJson).names }}
  - schedulerName: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end }}

{{/* A digest of the content is in the name: a change rolls the pods, and a rollback brings its own configuration. */}}
{{- define "asched.configMap" -}}
{{ include "asched.named" (list . "config") }}-{{ include "asched.config" . | sha256sum | trunc 10 }}
{{- end }}

{{- define "asched.job" -}}
{{- .Values.monitoring.job | default (include "asched.fullname" .) }}
{{- end }}
