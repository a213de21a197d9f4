//! By which certificate does the API server verify the webhook? The manifests leave the authority out, for it
//! is made in the cluster. It is written into the webhook configurations here, and again when another client
//! has changed it.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use kube::api::PostParams;
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use tokio::sync::watch;

/// The name of both webhook configurations.
const NAME: &str = "ebb-injector";
/// How often both configurations are read and compared.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Replicas begin at once, and each write of one refuses that of another.
const ATTEMPTS_MAX: u32 = 5;

/// Keeps both configurations up to date, for as long as there are roots; sets `is_known` the first time that
/// both are.
pub(super) async fn keep(client: Client, mut roots: watch::Receiver<String>, is_known: watch::Sender<bool>) {
    let mutating = Api::<MutatingWebhookConfiguration>::all(client.clone());
    let validating = Api::<ValidatingWebhookConfiguration>::all(client);
    loop {
        let bundle = ByteString(roots.borrow_and_update().clone().into_bytes());
        let written = [
            write(&mutating, |configuration| {
                put(configuration.webhooks.iter_mut().flatten().map(|hook| &mut hook.client_config), &bundle)
            })
            .await,
            write(&validating, |configuration| {
                put(configuration.webhooks.iter_mut().flatten().map(|hook| &mut hook.client_config), &bundle)
            })
            .await,
        ];
        if written.iter().all(Result::is_ok) {
            is_known.send_replace(true);
        }
        for error in written.into_iter().filter_map(Result::err) {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(
                error,
                "a webhook configuration could not be written; the API server may not trust the webhook"
            );
        }
        // Cancel-safe: what changed is a state, and looking earlier than due does no harm.
        tokio::select! {
            changed = roots.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
    }
}

/// Whether one of them had another bundle.
fn put<'a>(configs: impl Iterator<Item = &'a mut WebhookClientConfig>, bundle: &ByteString) -> bool {
    let mut is_news = false;
    for config in configs {
        is_news |= config.ca_bundle.replace(bundle.clone()).as_ref() != Some(bundle);
    }
    is_news
}

/// Writes a configuration over what was read, if `change` changes it. Another writer that wants it otherwise
/// is followed at the next look.
async fn write<Configuration>(
    api: &Api<Configuration>,
    change: impl Fn(&mut Configuration) -> bool,
) -> Result<(), kube::Error>
where
    Configuration: Clone + Debug + DeserializeOwned + serde::Serialize,
{
    for _ in 0..ATTEMPTS_MAX {
        let Some(mut configuration) = api.get_opt(NAME).await? else { return Ok(()) };
        if !change(&mut configuration) {
            return Ok(());
        }
        match api.replace(NAME, &PostParams::default(), &configuration).await {
            Ok(_) => {
                tracing::info!(name = NAME, "the API server knows the webhook by its authority");
                return Ok(());
            }
            // Another replica was faster, most likely with the same.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
