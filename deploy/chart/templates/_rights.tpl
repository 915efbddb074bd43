{{/* Rules of ClusterRoles. A test compares them with the manifests of deploy/base, overlays and components. */}}
{{- define "asched.schedulingRights" -}}
# Pods: watch, read back after a lost answer, bind, write conditions.
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch]
- apiGroups: [""]
  resources: [pods/binding]
  verbs: [create]
- apiGroups: [""]
  resources: [pods/status]
  verbs: [patch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create, patch]
# What placement depends on.
- apiGroups: [""]
  resources: [nodes, namespaces, services, replicationcontrollers]
  verbs: [list, watch]
- apiGroups: [apps]
  resources: [replicasets, statefulsets]
  verbs: [list, watch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch]
- apiGroups: [storage.k8s.io]
  resources: [storageclasses, csinodes, csidrivers, csistoragecapacities, volumeattachments]
  verbs: [list, watch]
- apiGroups: [resource.k8s.io]
  resources: [resourceslices, deviceclasses, devicetaintrules]
  verbs: [list, watch]
# DefaultPreemption: victims.
- apiGroups: [""]
  resources: [pods]
  verbs: [delete]
# VolumeBinding: the selected node of a claim, the claim of a volume.
- apiGroups: [""]
  resources: [persistentvolumes, persistentvolumeclaims]
  verbs: [list, watch, patch]
# DynamicResources: allocations, and claims made for extended resources.
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims]
  verbs: [list, watch, create, patch, delete]
- apiGroups: [resource.k8s.io]
  resources: [resourceclaims/status, resourceclaims/binding]
  verbs: [patch]
{{- if .Values.config }}
{{- if (include "asched.document" . | fromYaml).pools }}
# Victims on nodes of another pool than their namespace's: evictions respect disruption budgets.
- apiGroups: [""]
  resources: [pods/eviction]
  verbs: [create]
{{- end }}
{{- end }}
{{- end }}

{{- define "asched.servingRights" -}}
- apiGroups: [authentication.k8s.io]
  resources: [tokenreviews]
  verbs: [create]
- apiGroups: [authorization.k8s.io]
  resources: [subjectaccessreviews]
  verbs: [create]
{{- end }}

{{- define "asched.shadowRights" -}}
- apiGroups: [""]
  resources:
    - pods
    - nodes
    - namespaces
    - services
    - replicationcontrollers
    - persistentvolumes
    - persistentvolumeclaims
  verbs: [list, watch]
- apiGroups: [apps]
  resources: [replicasets, statefulsets]
  verbs: [list, watch]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [list, watch]
- apiGroups: [storage.k8s.io]
  resources: [storageclasses, csinodes, csidrivers, csistoragecapacities, volumeattachments]
  verbs: [list, watch]
- apiGroups: [resource.k8s.io]
  resources: [resourceslices, deviceclasses, devicetaintrules, resourceclaims]
  verbs: [list, watch]
{{- end }}

{{- define "asched.optionRights" -}}
backfill:
  - apiGroups: [batch]
    resources: [jobs]
    verbs: [list, watch]
capacityScheduling:
  - apiGroups: [scheduling.x-k8s.io]
    resources: [elasticquotas]
    verbs: [list, watch]
checkAndHold:
  - apiGroups: [autoscaling.x-k8s.io]
    resources: [provisioningrequests]
    verbs: [list, watch]
  - apiGroups: [autoscaling.x-k8s.io]
    resources: [provisioningrequests/status]
    verbs: [patch]
  - apiGroups: [""]
    resources: [podtemplates]
    verbs: [list, watch]
coscheduling:
  - apiGroups: [scheduling.x-k8s.io]
    resources: [podgroups]
    verbs: [list, watch]
gpuAnnotations:
  - apiGroups: [""]
    resources: [pods]
    verbs: [patch]
gpuNodeLocks:
  - apiGroups: [""]
    resources: [nodes]
    verbs: [patch]
groupScaleUp:
  - apiGroups: [autoscaling.x-k8s.io]
    resources: [provisioningrequests]
    verbs: [list, watch, create, delete]
  - apiGroups: [""]
    resources: [podtemplates]
    verbs: [list, watch, create, delete]
heldNodes:
  - apiGroups: [""]
    resources: [nodes]
    verbs: [patch]
koordinator:
  - apiGroups: [slo.koordinator.sh]
    resources: [nodemetrics]
    verbs: [list, watch]
load:
  - apiGroups: [metrics.k8s.io]
    resources: [nodes]
    verbs: [list]
networkTopology:
  - apiGroups: [kueue.x-k8s.io, kai.scheduler]
    resources: [topologies]
    verbs: [list, watch]
  - apiGroups: [topology.volcano.sh]
    resources: [hypernodes]
    verbs: [list, watch]
numa:
  - apiGroups: [topology.node.k8s.io]
    resources: [noderesourcetopologies]
    verbs: [list, watch]
podGroups:
  - apiGroups: [scheduling.k8s.io]
    resources: [podgroups, compositepodgroups]
    verbs: [list, watch]
  - apiGroups: [scheduling.k8s.io]
    resources: [podgroups/status, compositepodgroups/status]
    verbs: [patch]
rebalance:
  - apiGroups: [""]
    resources: [pods/eviction]
    verbs: [create]
  - apiGroups: [batch]
    resources: [jobs]
    verbs: [list, watch]
statusControllers:
  - apiGroups: [scheduling.x-k8s.io]
    resources: [podgroups/status, elasticquotas/status]
    verbs: [patch]
{{- end }}
