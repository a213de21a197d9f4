//! In whose place does a queue-proxy stand, and what holds there that its environment does not say?
//!
//! Knative's controller writes the environment of its queue-proxies by its own rules and names nothing of
//! ours. So each value that ebb's injector would have written follows here from what the controller writes.
//! (Contract of the installation, §6.1, §6.5, §6.6.)

use std::time::Duration;

use runtime::{Environment, EnvironmentReader, Observability, RequestReporting};
use vocabulary::{AppProtocol, DRAIN_LIMIT_DEFAULT, PodName, Problem, RequestTimeouts, drain_limit_within};

/// The port of requests by which Knative's controller says that the app speaks HTTP/2 without TLS.
const H2C_PORT: u16 = 8013;
/// The time that Kubernetes gives a pod for its end unless the pod says another.
const APP_GRACE_DEFAULT: Duration = Duration::from_secs(30);
/// What an app has at most for its own end in a pod of Knative's, whose whole grace period is the time of one
/// request.
const APP_GRACE_MAX: Duration = Duration::from_secs(10);

/// Whose queue-proxy this one stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueProxyPlace {
    /// In an installation of ebb's own, on a cluster or on one machine.
    #[default]
    Ebb,
    /// In a pod that the controller of an installed Knative made.
    Knative,
}

impl QueueProxyPlace {
    /// Knative's controller writes both variables into every queue-proxy, and no other program writes both.
    pub(super) fn read(reader: &EnvironmentReader<'_>) -> Self {
        let written = ["SYSTEM_NAMESPACE", "QUEUE_SERVING_TLS_PORT"].map(|name| reader.text(name).is_some());
        if written == [true; 2] { Self::Knative } else { Self::Ebb }
    }

    /// The name under which the pod reports. The autoscaler and activators know a pod of a cluster as
    /// `NAMESPACE/NAME`, and Knative's controller writes the name alone.
    pub(super) fn pod_name(self, namespace: &str, pod: &str) -> PodName {
        let is_whole = self == Self::Ebb || namespace.is_empty() || pod.contains('/');
        if is_whole { PodName::new(pod) } else { PodName::new(&format!("{namespace}/{pod}")) }
    }

    /// The protocol of an app, as it was said or as the port of requests says it.
    pub(super) fn app_protocol(self, said: Option<AppProtocol>, requests: u16) -> AppProtocol {
        let by_port = if requests == H2C_PORT { AppProtocol::H2c } else { AppProtocol::Unsaid };
        said.unwrap_or(match self {
            Self::Ebb => AppProtocol::Unsaid,
            Self::Knative => by_port,
        })
    }

    /// The authority of the autoscaler's certificate. `ROOT_CA` is what a person writes as
    /// `queue-sidecar-rootca` of `config-deployment`; Knative's own queue-proxy makes no use of it.
    pub(super) fn link_ca(self, reader: &EnvironmentReader<'_>) -> Option<String> {
        let of_controller = || reader.text("ROOT_CA").filter(|_| self == Self::Knative);
        reader.text("EBB_LINK_CA").or_else(of_controller).map(str::to_owned)
    }

    /// The settings of the request log and of traces. In Knative's place nothing is told about requests where
    /// they cannot be read: Knative's webhook has let them pass, and every pod would end with them.
    pub(super) fn observability(
        self,
        reader: &mut EnvironmentReader<'_>,
    ) -> (Observability, RequestReporting) {
        const NAME: &str = "OBSERVABILITY_CONFIG";
        if self == Self::Knative
            && let Err(problems) = read_alone(NAME, reader.text(NAME).unwrap_or_default())
        {
            for problem in problems {
                reader.warn(NAME, &format!("has no effect: {problem}"));
            }
            return Default::default();
        }
        reader.observability(NAME)
    }

    /// What the app has for its own end where `EBB_APP_GRACE` says nothing. The grace period of a pod of
    /// Knative's is the time that one request may take: of a short one most must be left for requests.
    pub(super) fn app_grace(self, timeouts: RequestTimeouts) -> Duration {
        match (self, timeouts.request) {
            (Self::Knative, Some(grace)) => APP_GRACE_MAX.min(grace / 4),
            (Self::Ebb | Self::Knative, _) => APP_GRACE_DEFAULT,
        }
    }

    /// How long a drain may take. In a pod of Knative's that is known without a link: the grace period less
    /// the app's own time. `EBB_DRAIN_LIMIT` is written where a webhook has given the pod a longer period.
    pub(super) fn drain_limit(
        self,
        reader: &mut EnvironmentReader<'_>,
        timeouts: RequestTimeouts,
        app_grace: Duration,
    ) -> Duration {
        let is_said = reader.text("EBB_DRAIN_LIMIT").is_some();
        let limit = timeouts.drain_limit(reader.duration_or("EBB_DRAIN_LIMIT", DRAIN_LIMIT_DEFAULT));
        match (self, timeouts.request) {
            (Self::Knative, Some(grace)) if !is_said => limit.min(drain_limit_within(grace, app_grace)),
            (Self::Ebb | Self::Knative, _) => limit,
        }
    }
}

/// The problems of these settings, if they have any.
fn read_alone(name: &str, text: &str) -> Result<(), Vec<Problem>> {
    let environment = Environment::from([(name.to_owned(), text.to_owned())]);
    let mut reader = EnvironmentReader::new(&environment);
    let _read = reader.observability(name);
    reader.finish(()).map(|_checked| ())
}
