//! The records of each request besides metrics: Knative's settings, as its control plane hands them to a
//! queue-proxy (`OBSERVABILITY_CONFIG`, a JSON object), and as people write them.

pub(crate) mod config_map;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::request_log::{REQUEST_LOG_TEMPLATE, RequestLogTemplate};
use crate::traces::{TracePlan, TracingProblem, TracingSettings};

/// See the module. Keys that are not here ask for nothing of ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Observability {
    /// Whether a line is written for each request.
    pub enable_request_log: bool,
    /// The template of each line, in Knative's syntax.
    pub request_log_template: String,
    /// Whether probes have lines in the request log, too.
    pub enable_probe_request_log: bool,
    /// The collector of traces, and the part of requests that have one.
    pub tracing: TracingSettings,
}

/// The checked form of [`Observability`]: templates are parsed, URLs are split.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestReporting {
    /// The shape of the request log's lines, if there are to be any.
    pub log: Option<RequestLogTemplate>,
    /// The collector and the sampling of traces, if there are to be any.
    pub traces: Option<TracePlan>,
}

/// The part of [`Observability`] that is invalid, and why.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ObservabilityProblem {
    /// The shape of the request log's lines.
    #[error("requestLogTemplate {0}")]
    Template(String),
    /// A setting of traces is invalid.
    #[error("tracing.{field} {0}", field = .0.field())]
    Tracing(#[from] TracingProblem),
}

impl Default for Observability {
    fn default() -> Self {
        Self {
            enable_request_log: false,
            request_log_template: REQUEST_LOG_TEMPLATE.to_owned(),
            enable_probe_request_log: false,
            tracing: TracingSettings::default(),
        }
    }
}

impl Observability {
    /// Whether anything is told about requests.
    pub fn asks_for_anything(&self) -> bool {
        self.enable_request_log || !["", "none"].contains(&self.tracing.protocol.as_str())
    }

    /// The value of a queue-proxy's `OBSERVABILITY_CONFIG`. `None` if nothing is asked for, so that pods of
    /// users without these settings have no such variable.
    pub fn variable(&self) -> Option<String> {
        let json = || serde_json::to_string(self).expect("settings are plain data");
        self.asks_for_anything().then(json)
    }

    /// Checks the settings. An error names the first setting that is invalid.
    pub fn reporting(&self) -> Result<RequestReporting, ObservabilityProblem> {
        let log = self.request_log().map_err(ObservabilityProblem::Template)?;
        Ok(RequestReporting { log, traces: self.tracing.plan()? })
    }

    /// The shape of the lines, if there are to be any. An error says what is wrong with it.
    pub fn request_log(&self) -> Result<Option<RequestLogTemplate>, String> {
        if !self.enable_request_log {
            return Ok(None);
        }
        if self.request_log_template.is_empty() {
            return Err("is empty; write a template, or turn logging.enable-request-log off".to_owned());
        }
        RequestLogTemplate::parse(&self.request_log_template).map(Some).map_err(|problem| problem.to_string())
    }
}
