//! How are labels and annotations of an installed Knative called, and which ports do its programs have?

pub(super) const REVISION: &str = "serving.knative.dev/revision";
pub(super) const REVISION_UID: &str = "serving.knative.dev/revisionUID";
pub(super) const SERVICE: &str = "serving.knative.dev/service";
pub(super) const CONFIGURATION: &str = "serving.knative.dev/configuration";
pub(super) const GENERATION: &str = "serving.knative.dev/configurationGeneration";
pub(super) const ROUTING_STATE: &str = "serving.knative.dev/routingState";
/// On a revision alone, by which the stand-in knows the template that it was made of: no Configuration is
/// played, whose generation would say it.
pub(super) const TEMPLATE: &str = "stand-in.example.com/template";
/// By which the controller knows whether it has to write a Deployment's template again.
pub(super) const DEPLOYMENT_HASH: &str = "serving.knative.dev/deployment-hash";
/// Settings of the autoscaler, which stand on no Deployment.
pub(super) const AUTOSCALING: &str = "autoscaling.knative.dev/";
pub(super) const CLASS: &str = "autoscaling.knative.dev/class";
pub(super) const METRIC: &str = "autoscaling.knative.dev/metric";
pub(super) const INITIAL_SCALE: &str = "autoscaling.knative.dev/initial-scale";
/// The name of the `ServerlessService` on the Services that are made for it.
pub(super) const SERVERLESS_SERVICE: &str = "networking.internal.knative.dev/serverlessservice";
pub(super) const SERVICE_TYPE: &str = "networking.internal.knative.dev/serviceType";

/// The port of a queue-proxy and of an activator for HTTP/1.1 requests.
pub(super) const HTTP1_PORT: u16 = 8012;
/// The same for HTTP/2 without TLS.
pub(super) const H2C_PORT: u16 = 8013;
/// The same for TLS, at which the stand-ins do not listen.
pub(super) const TLS_PORT: u16 = 8112;
/// The page of a queue-proxy with its load.
pub(super) const STAT_PORT: u16 = 9090;
/// The page of a queue-proxy with metrics of requests, which the stand-ins do not serve.
pub(super) const REQUEST_METRICS_PORT: u16 = 9091;
/// The port of a queue-proxy at which kubelet's hooks wait for the drain.
pub(super) const DRAIN_PORT: u16 = 8022;
