//! Several pages of OpenMetrics as one: the lines of a metric stand together, so pages cannot follow one
//! another.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::scraped_pod::ScrapedPod;

/// What is taken of a pod's page. The rest is about its process, and named like ours.
const PREFIX: &str = "queue_proxy_";

/// The end of a page.
const END: &str = "# EOF\n";

/// The metrics of all pods, by name.
#[derive(Debug, Default)]
pub(super) struct MergedMetrics(BTreeMap<String, ScrapedMetric>);

#[derive(Debug, Default)]
struct ScrapedMetric {
    /// Its description, as the first pod gives it.
    about: String,
    lines: String,
}

impl MergedMetrics {
    /// Adds the page of a pod.
    pub(super) fn add(&mut self, of: &ScrapedPod, page: &str) {
        let revision = &of.revision;
        let labels = format!(
            "namespace=\"{}\",revision=\"{}/{}\",pod=\"{}\"",
            revision.namespace(),
            revision.kind(),
            revision.name(),
            of.pod
        );
        let (mut name, mut is_first) = (None, false);
        for line in page.lines() {
            if let Some(about) = line.strip_prefix("# ") {
                // "HELP NAME …", "TYPE NAME …", "UNIT NAME …"
                let Some(described) = about.split(' ').nth(1).filter(|name| name.starts_with(PREFIX)) else {
                    name = None;
                    continue;
                };
                if name != Some(described) {
                    // Asked once for each metric: its next line of description would find the entry that this
                    // one makes.
                    is_first = !self.0.contains_key(described);
                    name = Some(described);
                }
                let metric = self.0.entry(described.to_owned()).or_default();
                if is_first {
                    writeln!(metric.about, "{line}").expect("writing to a string does not fail");
                }
            } else if let Some(metric) = name.and_then(|name| self.0.get_mut(name)) {
                add_line(line, &labels, &mut metric.lines);
            }
        }
    }

    /// A page with all of this behind it, and how many pods are not on it.
    pub(super) fn behind(self, mut page: String, left_out: usize) -> String {
        let is_ended = page.ends_with(END);
        if is_ended {
            page.truncate(page.len() - END.len());
        }
        page.push_str("# HELP supervisor_unscraped_pods Pods whose metrics are not on this page.\n");
        page.push_str("# TYPE supervisor_unscraped_pods gauge\n");
        writeln!(page, "supervisor_unscraped_pods {left_out}").expect("writing to a string does not fail");
        for metric in self.0.into_values() {
            page.push_str(&metric.about);
            page.push_str(&metric.lines);
        }
        if is_ended {
            page.push_str(END);
        }
        page
    }
}

/// `NAME 1` and `NAME{label="x"} 1`, with further labels.
fn add_line(line: &str, labels: &str, out: &mut String) {
    let written = match (line.split_once('{'), line.split_once(' ')) {
        (Some((name, rest)), _) => writeln!(out, "{name}{{{labels},{rest}"),
        (None, Some((name, value))) => writeln!(out, "{name}{{{labels}}} {value}"),
        // No page of metrics has such a line.
        (None, None) => Ok(()),
    };
    written.expect("writing to a string does not fail");
}

#[cfg(test)]
mod tests {
    use vocabulary::{PodName, RevisionName};

    use super::*;

    #[test]
    fn the_lines_of_a_metric_stand_together_and_name_their_pods() {
        let pod = |name: &str| ScrapedPod {
            revision: RevisionName::parse("default/service/hello").expect("a name"),
            pod: PodName::new(name),
            port: 1,
        };
        let page = "# HELP runtime_tasks Tasks.\n# TYPE runtime_tasks gauge\nruntime_tasks 3\n\
                    # HELP queue_proxy_requests Requests.\n# TYPE queue_proxy_requests counter\n\
                    queue_proxy_requests_total{outcome=\"answered\"} 7\n\
                    # HELP queue_proxy_ready Ready.\n# TYPE queue_proxy_ready gauge\nqueue_proxy_ready 1\n# EOF\n";
        let mut merged = MergedMetrics::default();
        merged.add(&pod("a"), page);
        merged.add(&pod("b"), page);
        let labels = |pod: &str| format!("namespace=\"default\",revision=\"service/hello\",pod=\"{pod}\"");
        let expected = format!(
            "# HELP own Ours.\n# TYPE own gauge\nown 1\n\
             # HELP supervisor_unscraped_pods Pods whose metrics are not on this page.\n\
             # TYPE supervisor_unscraped_pods gauge\nsupervisor_unscraped_pods 2\n\
             # HELP queue_proxy_ready Ready.\n# TYPE queue_proxy_ready gauge\n\
             queue_proxy_ready{{{0}}} 1\nqueue_proxy_ready{{{1}}} 1\n\
             # HELP queue_proxy_requests Requests.\n# TYPE queue_proxy_requests counter\n\
             queue_proxy_requests_total{{{0},outcome=\"answered\"}} 7\n\
             queue_proxy_requests_total{{{1},outcome=\"answered\"}} 7\n# EOF\n",
            labels("a"),
            labels("b")
        );
        let own = "# HELP own Ours.\n# TYPE own gauge\nown 1\n# EOF\n";
        assert_eq!(merged.behind(own.to_owned(), 2), expected);
    }
}
