//! The format of a metrics page: OpenMetrics, or Prometheus' older plain text for a client that asks for
//! that.

use std::fmt::Write;

/// A text format for metrics that Prometheus reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsFormat {
    /// The text format of OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' text format 0.0.4, which `promtool check metrics` reads and browsers show.
    PlainText,
}

impl MetricsFormat {
    /// The format that the `Accept` header of a request asks for. A client that names OpenMetrics gets it, as
    /// Prometheus does; else plain text, if any text is named.
    pub fn asked_for(accept: Option<&str>) -> Self {
        let accept = accept.unwrap_or_default().to_ascii_lowercase();
        if !accept.contains("application/openmetrics-text") && accept.contains("text/") {
            Self::PlainText
        } else {
            Self::OpenMetrics
        }
    }

    /// The content type of a page in this format.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::PlainText => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// A page of OpenMetrics in this form.
    pub fn of_page(self, page: String) -> String {
        match self {
            Self::OpenMetrics => page,
            Self::PlainText => plain(&page),
        }
    }
}

/// The older form calls a counter in its description as in its lines, and knows neither units nor an end.
fn plain(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    let mut help = None;
    for line in page.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            help = described.split_once(' ');
        } else if let Some((name, kind)) =
            line.strip_prefix("# TYPE ").and_then(|typed| typed.split_once(' '))
        {
            let suffix = if kind == "counter" { "_total" } else { "" };
            let kind = if kind == "unknown" { "untyped" } else { kind };
            if let Some((_, words)) = help.take() {
                writeln!(text, "# HELP {name}{suffix} {words}").expect("writing to a string does not fail");
            }
            writeln!(text, "# TYPE {name}{suffix} {kind}").expect("writing to a string does not fail");
        } else if !line.starts_with("# ") {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_the_form_only_for_clients_that_name_it_and_not_openmetrics() {
        for (accept, expected) in [
            (None, MetricsFormat::OpenMetrics),
            (Some("*/*"), MetricsFormat::OpenMetrics),
            (Some("text/plain"), MetricsFormat::PlainText),
            (Some("text/plain;version=0.0.4;q=0.3,*/*;q=0.2"), MetricsFormat::PlainText),
            (Some("text/html,application/xhtml+xml,*/*;q=0.8"), MetricsFormat::PlainText),
            (Some("application/openmetrics-text;version=1.0.0,text/plain;q=0.5"), MetricsFormat::OpenMetrics),
        ] {
            assert_eq!(MetricsFormat::asked_for(accept), expected, "{accept:?}");
        }
    }

    #[test]
    fn plain_text_names_counters_in_full() {
        let page = "# HELP a_wakes Wakes.\n# TYPE a_wakes counter\na_wakes_total 1\n\
                    # HELP b_seconds Waits.\n# TYPE b_seconds histogram\n# UNIT b_seconds seconds\nb_seconds_sum 0.0\n# EOF\n";
        assert_eq!(
            plain(page),
            "# HELP a_wakes_total Wakes.\n# TYPE a_wakes_total counter\na_wakes_total 1\n\
             # HELP b_seconds Waits.\n# TYPE b_seconds histogram\nb_seconds_sum 0.0\n"
        );
    }
}
