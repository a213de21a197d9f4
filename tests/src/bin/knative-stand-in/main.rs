//! `knative-stand-in ROLE`: a stand-in of one of Knative's programs in a pod of the cluster of tests.
//!
//! Roles are `controller`, `ingress`, `activator`, `queue-proxy` and `idle`, which does nothing: it stands
//! where a program of Knative's stands that is not played. [`tests::knative`] says what each does.

use anyhow::bail;
use tests::knative::{activator, controller, ingress, queue_proxy};
use tokio::signal::unix::{SignalKind, signal};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> anyhow::Result<()> {
    let role = std::env::args().nth(1).unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match role.as_str() {
            "controller" => controller::run().await,
            "ingress" => ingress::run().await,
            "activator" => activator::run().await,
            "queue-proxy" => queue_proxy::run().await,
            "idle" => {
                signal(SignalKind::terminate())?.recv().await;
                Ok(())
            }
            other => bail!("no program of Knative's is called {other:?}; write controller, ingress, activator, queue-proxy or idle"),
        }
    })
}
