//! `kubectl ebb install`: ebb in a cluster, or at this version, by server-side apply of one manifest.
//!
//! First the API server says of each object whether it would be new or changed, and that is printed. Fields
//! that others own are taken over only when a person says so: an overlay that applies ebb's manifests has its
//! reasons.

mod manifests;

use std::process::ExitCode;

use anyhow::{Context, bail};
use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::Value;

use crate::cli::{ClusterInstallOptions, EBBS_SYSTEM};
use crate::cluster::Cluster;
use crate::output;
use manifests::{InstalledObject, ObjectScope};
pub(crate) use manifests::{QUEUE_PROXY_IMAGE, VERSION_LABEL};

/// Under this name the API server notes the fields of these objects.
const FIELD_MANAGER: &str = "ebb-install";

/// The Deployment that tells which image is installed, and the container in it.
const AUTOSCALER: &str = "autoscaler";

/// What an apply does, or would do, to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ObjectChange {
    Created,
    Changed,
    Unchanged,
}

impl ObjectChange {
    fn word(self) -> &'static str {
        match self {
            Self::Created => "new",
            Self::Changed => "changed",
            Self::Unchanged => "as it is",
        }
    }
}

/// Prints the plan, and carries it out unless only that was asked for.
pub(crate) fn run(options: &ClusterInstallOptions) -> anyhow::Result<ExitCode> {
    if options.cluster.system_namespace != EBBS_SYSTEM {
        bail!(
            "--system-namespace is {}, and these manifests are for {EBBS_SYSTEM}; write an overlay for another namespace (docs/start/cluster.md)",
            options.cluster.system_namespace
        );
    }
    if options.print {
        let objects = manifests::objects(&options.images(None)?);
        output::print_line(manifests::manifest(&objects)?.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    crate::up::runtime()?.block_on(async {
        let cluster = Cluster::find(&options.cluster).await?;
        let images = options.images(installed_image(&cluster).await?.as_deref())?;
        let objects = manifests::objects(&images);
        let context = &cluster.context;
        let (own, queue_proxy) = (&images.own, &images.queue_proxy);
        output::print_shown(&format!("cluster of context {context}; image {own}, for pods {queue_proxy}"))?;
        let installer = Installer { cluster: &cluster, parameters: parameters(options) };
        installer.show_plan(&objects).await?;
        if options.dry_run {
            output::print_line("nothing was written (--dry-run)")?;
        } else {
            installer.apply_all(&objects).await?;
            output::print_line("applied; `kubectl ebb check` says whether ebb runs")?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The image of the autoscaler that is in the cluster.
async fn installed_image(cluster: &Cluster) -> anyhow::Result<Option<String>> {
    let found = cluster.system_api::<Deployment>().get_opt(AUTOSCALER).await;
    let found = found.with_context(|| format!("Deployment {AUTOSCALER} could not be read"))?;
    let template = found.and_then(|found| found.spec).and_then(|spec| spec.template.spec);
    let mut containers = template.into_iter().flat_map(|pod| pod.containers);
    Ok(containers.find(|container| container.name == AUTOSCALER).and_then(|container| container.image))
}

fn parameters(options: &ClusterInstallOptions) -> PatchParams {
    let apply = PatchParams::apply(FIELD_MANAGER);
    if options.force_conflicts { apply.force() } else { apply }
}

/// The cluster that gets the objects, and how they are applied.
struct Installer<'c> {
    cluster: &'c Cluster,
    parameters: PatchParams,
}

impl Installer<'_> {
    /// Prints for each object what an apply would do, as the API server says it.
    async fn show_plan(&self, objects: &[InstalledObject]) -> anyhow::Result<()> {
        for object in objects {
            let change = self.change(object).await?;
            output::print_shown(&format!("  {:<9} {object}", change.word()))?;
        }
        Ok(())
    }

    async fn change(&self, object: &InstalledObject) -> anyhow::Result<ObjectChange> {
        let present = self.api(object).get_opt(object.name()).await;
        let Some(present) = present.with_context(|| format!("{object} could not be read"))? else {
            // In a namespace that is not there yet no object can be tried.
            return Ok(ObjectChange::Created);
        };
        let tried = self.apply(object, &self.parameters.clone().dry_run()).await?;
        Ok(if is_same(&present, &tried) { ObjectChange::Unchanged } else { ObjectChange::Changed })
    }

    async fn apply_all(&self, objects: &[InstalledObject]) -> anyhow::Result<()> {
        for object in objects {
            self.apply(object, &self.parameters).await?;
        }
        Ok(())
    }

    async fn apply(
        &self,
        object: &InstalledObject,
        parameters: &PatchParams,
    ) -> anyhow::Result<DynamicObject> {
        let patch = Patch::Apply(&object.value);
        match self.api(object).patch(object.name(), parameters, &patch).await {
            Err(kube::Error::Api(status)) if status.code == 409 => bail!(
                "{object} has fields of another writer: {}; apply them where that writer has its manifests (your overlay of deploy/base), or take them over with --force-conflicts",
                status.message
            ),
            applied => applied.with_context(|| format!("{object} could not be applied")),
        }
    }

    fn api(&self, object: &InstalledObject) -> Api<DynamicObject> {
        let (group, version) = object.group_and_version();
        let kind = object.value["kind"].as_str().unwrap_or_default();
        let named = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&named, object.kind.resource);
        let client = self.cluster.client.clone();
        match object.kind.scope {
            ObjectScope::Cluster => Api::all_with(client, &resource),
            ObjectScope::System => Api::namespaced_with(client, EBBS_SYSTEM, &resource),
        }
    }
}

/// Whether two states of an object differ in nothing that a person writes: the API server's own notes, such
/// as the owners of fields, are left out.
fn is_same(before: &DynamicObject, after: &DynamicObject) -> bool {
    let without_status = |object: &DynamicObject| {
        let mut data = object.data.clone();
        if let Value::Object(fields) = &mut data {
            fields.remove("status");
        }
        data
    };
    let (former, new) = (&before.metadata, &after.metadata);
    former.labels == new.labels
        && former.annotations == new.annotations
        && without_status(before) == without_status(after)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_changed_by_its_fields_and_not_by_the_notes_of_the_api_server() {
        let object = |value: Value| -> DynamicObject { serde_json::from_value(value).expect("an object") };
        let of = |version: &str, replicas: u32, status: u32, label: &str| {
            object(json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "a", "resourceVersion": version, "labels": {"a": label}},
                "spec": {"replicas": replicas}, "status": {"readyReplicas": status},
            }))
        };
        let present = of("1", 2, 1, "x");
        assert!(is_same(&present, &of("2", 2, 2, "x")));
        assert!(!is_same(&present, &of("1", 3, 1, "x")) && !is_same(&present, &of("1", 2, 1, "y")));
    }
}
