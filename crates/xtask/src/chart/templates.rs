//! How does a manifest become a template of Helm? The places that a value changes are rewritten, and every
//! object gets its namespace and the version, which kustomize adds as well.

use anyhow::Context;

use super::manifests::ManifestText;
use super::text::{LineRule, end_of_block, field, only};

/// The namespace in the manifests; the chart is for any.
const NAMESPACE: &str = "ebb-system";
/// Kinds whose objects are in no namespace.
const CLUSTER_SCOPED: [&str; 6] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "MutatingWebhookConfiguration",
    "Namespace",
    "PriorityClass",
    "ValidatingWebhookConfiguration",
];
/// Files that a value leaves out, with the condition under which they are there.
const CONDITIONS: [(&str, &str); 3] = [
    ("namespace.yaml", ".Values.namespace.create"),
    ("network-policies.yaml", ".Values.networkPolicies.enabled"),
    ("priority-class.yaml", "and .Values.priorityClass.create .Values.priorityClass.name"),
];
/// Braces that are the manifest's own: a template prints them.
const BRACES: &str = r#"{{ "{{" }}"#;
const VERSION: &str = "app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}";
/// Stands for the name of a Deployment, which is that of its values, too.
const PROGRAM: &str = "PROGRAM";

/// The lines of each of the three Deployments that a value changes.
const DEPLOYMENT: [LineRule; 3] = [
    LineRule {
        start: "  replicas: ",
        written: "  {{- with .Values.PROGRAM.replicas }}
  replicas: {{ int . }}
  {{- end }}",
    },
    LineRule {
        start: "      priorityClassName: ",
        written: "      {{- with .Values.priorityClass.name }}
      priorityClassName: {{ . | quote }}
      {{- end }}
      {{- with .Values.images.pullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 6 }}
      {{- end }}
      {{- with .Values.PROGRAM.nodeSelector }}
      nodeSelector: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .Values.PROGRAM.tolerations }}
      tolerations: {{- toYaml . | nindent 6 }}
      {{- end }}",
    },
    LineRule {
        start: "        image: ",
        written: r#"        image: {{ include "ebb.image" . | quote }}
        {{- with .Values.images.pullPolicy }}
        imagePullPolicy: {{ . | quote }}
        {{- end }}"#,
    },
];
/// The block of the resources, whose default is in the values.
const RESOURCES: &str = "        resources: {{- toYaml .Values.PROGRAM.resources | nindent 10 }}";
/// A variable of the autoscalers, the last one.
const BUCKETS: LineRule = LineRule {
    start: "        ports:",
    written: "        {{- if ne (int .Values.autoscaler.buckets) 1 }}
        - {name: AUTOSCALER_BUCKETS, value: {{ int .Values.autoscaler.buckets | quote }}}
        {{- end }}
        ports:",
};
const QUEUE_PROXY_IMAGE: LineRule = LineRule {
    start: "        - {name: QUEUE_PROXY_IMAGE, ",
    written: r#"        - {name: QUEUE_PROXY_IMAGE, value: {{ include "ebb.queueProxyImage" . | quote }}}"#,
};
const PRIORITY_CLASS: [LineRule; 2] = [
    LineRule { start: "  name: ", written: "  name: {{ .Values.priorityClass.name | quote }}" },
    // Helm reads numbers as floats, and would write this one with an exponent.
    LineRule { start: "value: ", written: "value: {{ int64 .Values.priorityClass.value }}" },
];
/// Keys of a ConfigMap that a value sets, behind `_example`.
const KEYS: &str = "  {{- with .Values.config.SECTION }}
  {{- toYaml . | nindent 2 }}
  {{- end }}";

/// The template of a file of manifests.
pub(super) fn template(manifest: &ManifestText) -> anyhow::Result<String> {
    let documents = manifest.documents();
    let written = documents.iter().map(|document| document_template(document));
    let written: Vec<String> = written.collect::<anyhow::Result<_>>().context(manifest.name.clone())?;
    let text = written.join("---\n");
    let note = format!("{{{{- /* Made of deploy/base/{} by `cargo xtask chart`. */ -}}}}\n", manifest.name);
    let condition = CONDITIONS.iter().find(|(name, _)| *name == manifest.name);
    Ok(match condition {
        Some((_, condition)) => format!("{note}{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"),
        None => note + &text,
    })
}

/// The template of one object.
fn document_template(document: &[&str]) -> anyhow::Result<String> {
    let (kind, name) = (field(document, "kind: ")?, field(document, "  name: ")?);
    let mut lines: Vec<String> = document.iter().map(|line| with_namespace(line)).collect();
    let changed = match kind {
        "Deployment" => deployment(&mut lines, name),
        "PriorityClass" => PRIORITY_CLASS.iter().try_for_each(|rule| replace(&mut lines, rule, name)),
        "ConfigMap" => {
            lines.push(KEYS.replace("SECTION", name.trim_start_matches("config-")));
            Ok(())
        }
        _ => Ok(()),
    };
    let changed = changed.and_then(|()| metadata(&mut lines, kind));
    changed.with_context(|| format!("{kind} {name}"))?;
    Ok(lines.join("\n") + "\n")
}

fn with_namespace(line: &str) -> String {
    let is_comment = line.trim_start().starts_with('#');
    let namespace = if is_comment { "{{ .Release.Namespace }}" } else { "{{ .Release.Namespace | quote }}" };
    line.replace("{{", BRACES).replace(NAMESPACE, namespace)
}

/// Adds the fields that kustomize adds: the namespace, where an object is in one, and the version.
fn metadata(lines: &mut Vec<String>, kind: &str) -> anyhow::Result<()> {
    let labels = only(lines, "  labels:")?;
    if let Some(others) = lines[labels].strip_prefix("  labels: {") {
        lines[labels] = format!("  labels: {{{VERSION}, {others}");
    } else {
        lines.insert(labels + 1, format!("    {VERSION}"));
    }
    let has_namespace = lines.iter().any(|line| line.starts_with("  namespace: "));
    if !has_namespace && !CLUSTER_SCOPED.contains(&kind) {
        let begin = only(lines, "metadata:")? + 1;
        lines.insert(begin, "  namespace: {{ .Release.Namespace | quote }}".to_owned());
    }
    Ok(())
}

fn deployment(lines: &mut Vec<String>, program: &str) -> anyhow::Result<()> {
    for rule in &DEPLOYMENT {
        replace(lines, rule, program)?;
    }
    let resources = only(lines, "        resources:")?;
    let end = end_of_block(lines, resources);
    lines.drain(resources..end);
    lines.insert(resources, RESOURCES.replace(PROGRAM, program));
    match program {
        "autoscaler" => replace(lines, &BUCKETS, program),
        "injector" => replace(lines, &QUEUE_PROXY_IMAGE, program),
        _ => Ok(()),
    }
}

/// Writes the only line that begins as the rule says anew.
fn replace(lines: &mut [String], rule: &LineRule, program: &str) -> anyhow::Result<()> {
    let at = only(lines, rule.start)?;
    lines[at] = rule.written.replace(PROGRAM, program);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, text: &str) -> anyhow::Result<String> {
        template(&ManifestText { name: name.to_owned(), text: text.to_owned() })
    }

    #[test]
    fn an_object_gets_its_namespace_and_the_version() {
        let text = "# In ebb-system.\nkind: Role\nmetadata:\n  name: a\n  labels: {b: c}\n---\nkind: ClusterRole\nmetadata:\n  name: a\n  labels:\n    b: c\n";
        let expected = "{{- /* Made of deploy/base/r.yaml by `cargo xtask chart`. */ -}}
# In {{ .Release.Namespace }}.
kind: Role
metadata:
  namespace: {{ .Release.Namespace | quote }}
  name: a
  labels: {app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}, b: c}
---
kind: ClusterRole
metadata:
  name: a
  labels:
    app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
    b: c
";
        assert_eq!(of("r.yaml", text).expect("it is a manifest"), expected);
    }

    #[test]
    fn braces_of_a_manifest_are_printed_and_not_carried_out() {
        let text = "kind: ConfigMap\nmetadata:\n  name: config-x\n  namespace: ebb-system\n  labels: {a: b}\ndata:\n  _example: |\n    t: \"{{.Request}}\"\n";
        let made = of("c.yaml", text).expect("it is a manifest");
        let line = r#"    t: "{{ "{{" }}.Request}}""#;
        assert!(made.lines().any(|written| written == line), "{made}");
        assert!(
            made.ends_with("  {{- with .Values.config.x }}\n  {{- toYaml . | nindent 2 }}\n  {{- end }}\n")
        );
        assert_eq!(made.matches("  namespace: {{ .Release.Namespace | quote }}").count(), 1, "{made}");
    }

    #[test]
    fn a_file_that_a_value_leaves_out_is_a_condition() {
        let text = "kind: NetworkPolicy\nmetadata:\n  name: a\n  labels: {b: c}\n";
        let made = of("network-policies.yaml", text).expect("it is a manifest");
        assert!(made.contains("\n{{- if .Values.networkPolicies.enabled }}\nkind: "), "{made}");
        assert!(made.ends_with("\n{{- end }}\n"), "{made}");
    }

    #[test]
    fn a_manifest_without_a_place_that_a_value_changes_is_an_error() {
        let text = "kind: Deployment\nmetadata:\n  name: activator\n  labels: {b: c}\nspec:\n  replicas: 2\n";
        let error = format!("{:#}", of("activator.yaml", text).expect_err("it has no priority class"));
        assert!(
            error.contains(
                "activator.yaml: Deployment activator: 0 lines begin with `      priorityClassName: `"
            ),
            "{error}"
        );
    }
}
