{{- /* Written by hand, as NOTES.txt is: what no manifest holds. */ -}}

{{- define "ebb.registry" -}}
{{- with .Values.images.registry }}{{ trimSuffix "/" . }}/{{ end -}}
{{- end -}}

{{- define "ebb.tag" -}}
{{- .Values.images.tag | default .Chart.AppVersion -}}
{{- end -}}

{{- define "ebb.image" -}}
{{- .Values.images.ebb | default (printf "%sebb:%s" (include "ebb.registry" .) (include "ebb.tag" .)) -}}
{{- end -}}

{{- define "ebb.queueProxyImage" -}}
{{- .Values.images.queueProxy | default (printf "%sebb-queue-proxy:%s" (include "ebb.registry" .) (include "ebb.tag" .)) -}}
{{- end -}}
