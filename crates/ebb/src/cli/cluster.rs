//! What commands take that speak to a cluster, or to an autoscaler wherever it is.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::api::{CredentialOptions, OutputFormat};
use super::values::duration;

/// The namespace of an installation by itself, where a person names none.
pub(crate) const EBBS_SYSTEM: &str = "ebb-system";
/// The namespace of an installed Knative's programs, where a person names none.
pub(crate) const KNATIVES_SYSTEM: &str = "knative-serving";

/// What commands take that ask an autoscaler, on this machine or of a cluster.
#[derive(Debug, Args)]
pub(crate) struct AutoscalerArguments {
    /// How the answer is shown.
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub(crate) output: OutputFormat,
    #[command(flatten)]
    pub(crate) place: AutoscalerPlace,
    /// Show those of all namespaces of the cluster.
    #[arg(short = 'A', long)]
    pub(crate) all_namespaces: bool,
}

/// Which autoscaler is asked: that of an `ebb up`, or that of a cluster.
#[derive(Debug, Args)]
pub(crate) struct AutoscalerPlace {
    /// The API of a running `ebb up`. Without this, and without a cluster's options, the one at
    /// 127.0.0.1:9000; if nothing answers there and a kubeconfig is known, its cluster.
    #[arg(long = "api", value_name = "URL", env = "EBB_API")]
    pub(crate) url: Option<String>,
    #[command(flatten)]
    pub(crate) credentials: CredentialOptions,
    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,
}

/// What the dashboard takes: of which autoscaler it is, and where it is shown.
#[derive(Debug, Args)]
pub(crate) struct DashboardOptions {
    #[command(flatten)]
    pub(crate) place: AutoscalerPlace,
    /// Of a cluster: the port of 127.0.0.1 at which its pages are; 0 is a free one.
    #[arg(long, value_name = "PORT", default_value = "0")]
    pub(crate) port: u16,
    /// Print the address and open no browser.
    #[arg(long)]
    pub(crate) print_only: bool,
}

/// What is done with the records of autoscalers.
#[derive(Debug, Subcommand)]
pub(crate) enum RecordCommand {
    /// Copy the records of the autoscalers that decide to this machine, for `ebb replay`.
    Save(RecordSaveOptions),
}

/// Which records are copied, and where to.
#[derive(Debug, Args)]
pub(crate) struct RecordSaveOptions {
    /// The folder that gets a folder of each autoscaler; it is made.
    #[arg(value_name = "DIRECTORY")]
    pub(crate) directory: PathBuf,
    #[command(flatten)]
    pub(crate) place: AutoscalerPlace,
}

/// Which cluster is meant, as `kubectl` takes it.
#[derive(Debug, Args)]
pub(crate) struct ClusterOptions {
    /// The kubeconfig, instead of $KUBECONFIG or ~/.kube/config.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The kubeconfig's context, instead of its current one.
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// The namespace, instead of the context's.
    #[arg(short, long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Where ebb itself is installed.
    #[arg(long, value_name = "NAMESPACE", default_value = EBBS_SYSTEM, hide_short_help = true)]
    pub(crate) system_namespace: String,
    /// Whether a person called the plugin of `kubectl`, and so means a cluster.
    #[arg(skip)]
    pub(crate) is_meant: bool,
}

impl ClusterOptions {
    /// Whether a person said that a cluster is meant.
    pub(crate) fn is_given(&self) -> bool {
        self.is_meant || self.kubeconfig.is_some() || self.context.is_some() || self.namespace.is_some()
    }
}

#[derive(Debug, Args)]
pub(crate) struct AdoptOptions {
    /// The Service to take over, as service/NAME.
    pub(crate) service: String,
    /// The workload that is scaled: KIND/NAME, or the NAME of a Deployment. Without this, the one whose pods
    /// the Service selects.
    #[arg(long, value_name = "WORKLOAD")]
    pub(crate) workload: Option<String>,
    /// How long each step may take.
    #[arg(long, value_name = "DURATION", default_value = "1m", value_parser = duration)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ReleaseOptions {
    /// The Service to give back, as service/NAME.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    pub(crate) service: Option<String>,
    /// All Services that are served through ebb: of the cluster, or of the namespace that --namespace names.
    #[arg(long, conflicts_with = "selector")]
    pub(crate) all: bool,
    /// What the Service is to select, where `ebb adopt` has not kept it.
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',', value_parser = label)]
    pub(crate) selector: Vec<(String, String)>,
    /// How long each may take until a pod that Kubernetes serves is ready.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,
}

#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// Check an installed Knative Serving instead: what stands in the way of ebb's programs in the place of
    /// Knative's, and how to mend it. NAMESPACE is that of Knative's programs, knative-serving by default.
    #[arg(
        long,
        value_name = "NAMESPACE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = KNATIVES_SYSTEM
    )]
    pub(crate) knative: Option<String>,
    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE, such as app=hello".to_owned()),
    }
}
