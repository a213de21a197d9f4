//! `ebb autoscale`: what to add to a workload so that it scales by CPU, as `kubectl autoscale` would do it.

use std::process::ExitCode;

use anyhow::bail;

use crate::annotate_command::annotate_command;
use crate::cli::AutoscaleOptions;
use crate::output;

/// Prints the annotations and where they belong; changes nothing.
pub(crate) fn run(options: &AutoscaleOptions) -> anyhow::Result<ExitCode> {
    output::print_line(text(options)?.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

fn text(options: &AutoscaleOptions) -> anyhow::Result<String> {
    let AutoscaleOptions { name, min, max, cpu_percent } = options;
    if max < min {
        bail!("--max is {max}, which is below --min {min}; raise it, or lower --min");
    }
    let annotations = [
        ("class", "hpa.autoscaling.knative.dev".to_owned()),
        ("metric", "cpu".to_owned()),
        ("target", cpu_percent.to_string()),
        ("min-scale", min.to_string()),
        ("max-scale", max.to_string()),
    ];
    let annotations = annotations.map(|(key, value)| (format!("autoscaling.knative.dev/{key}"), value));
    let lines = annotations.each_ref().map(|(key, value)| format!("{key}: {value:?}"));
    let indented = |by: usize| lines.each_ref().map(|line| format!("{:by$}{line}\n", "")).concat();
    Ok(format!(
        "# On one machine: into the Service {name}. Its container says under resources.requests.cpu what 100% is.\n\
         spec:\n  template:\n    metadata:\n      annotations:\n{}\n\
         # On a cluster: into the workload {name} itself.\n\
         metadata:\n  annotations:\n{}\
         # The same on a cluster, in one line:\n# {}\n",
        indented(8),
        indented(4),
        annotate_command(Some(name), &annotations)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(min: u32, max: u32) -> AutoscaleOptions {
        AutoscaleOptions { name: "web".to_owned(), min, max, cpu_percent: 50 }
    }

    #[test]
    fn the_annotations_are_printed_for_both_platforms() {
        let text = text(&options(2, 10)).expect("sound");
        assert_eq!(text.matches("autoscaling.knative.dev/target: \"50\"\n").count(), 2, "{text}");
        assert!(text.contains("      annotations:\n        autoscaling.knative.dev/class: \"hpa."), "{text}");
        assert!(text.contains("\nmetadata:\n  annotations:\n    autoscaling.knative.dev/class: "), "{text}");
        assert!(text.contains("autoscaling.knative.dev/min-scale: \"2\""), "{text}");
        let line = "# kubectl annotate --overwrite deployment/web autoscaling.knative.dev/class=hpa.";
        let last = text.lines().last().unwrap_or_default();
        assert!(last.starts_with(line) && last.ends_with(" autoscaling.knative.dev/max-scale=10"), "{last}");
    }

    #[test]
    fn bounds_that_contradict_each_other_are_refused() {
        let error = text(&options(3, 2)).expect_err("none fits");
        assert_eq!(error.to_string(), "--max is 2, which is below --min 3; raise it, or lower --min");
    }
}
