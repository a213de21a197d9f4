//! What is told about each request besides metrics: Knative's settings, as its control plane hands them to a queue-proxy (`OBSERVABILITY_CONFIG`, a JSON object), and as
//! `ebb up` hands them on.

use serde::{Deserialize, Serialize};

use crate::request_log::{REQUEST_LOG_TEMPLATE, RequestLogTemplate};

/// See the module. Keys that are not here ask for nothing of ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Observability {
    /// Whether a line is written for each request.
    pub enable_request_log: bool,
    /// Its shape.
    pub request_log_template: String,
    /// Whether for probes too.
    pub enable_probe_request_log: bool,
    /// Where traces go.
    pub tracing: TracingSettings,
}

/// Where traces go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TracingSettings {
    /// Over what: nothing, or `none`, means that there are none.
    pub protocol: String,
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
    /// Whether there are to be traces.
    pub fn asks_for_traces(&self) -> bool {
        !["", "none"].contains(&self.tracing.protocol.as_str())
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
