//! Which fields of a Service say whether Kubernetes or ebb serves it, and how are they changed without a
//! race?

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail};
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{PodTemplateSpec, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use vocabulary::{
    MIRROR_SLICE_WRITER, REVISION_ANNOTATION, SELECTOR_SLICE_WRITER, SLICE_WRITER, SLICE_WRITER_LABEL,
};

use super::Cluster;

/// What the selector was before `ebb adopt` took it away, as JSON: `ebb release` puts it back.
const FORMER_SELECTOR: &str = "ebb.dev/former-selector";
/// The controllers that write `EndpointSlice`s for Kubernetes.
const KUBERNETES: [&str; 2] = [SELECTOR_SLICE_WRITER, MIRROR_SLICE_WRITER];
/// Under which our fields are noted in objects.
const FIELD_MANAGER: &str = "ebb-cli";
/// Others may write the same object; so often it is read and written anew.
const ATTEMPTS_MAX: u32 = 4;
/// How often it is looked whether something has come about.
pub(crate) const LOOKS_EVERY: Duration = Duration::from_millis(300);

/// Labels that a Service asks for.
pub(crate) type ServiceSelector = BTreeMap<String, String>;

/// A Service that a person names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServiceName {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl ServiceName {
    /// `service/NAME`, also `svc/NAME`, `services/NAME`, or `NAME` alone.
    pub(crate) fn read(namespace: &str, text: &str) -> anyhow::Result<Self> {
        let (kind, name) = text.split_once('/').unwrap_or(("service", text));
        if !["service", "services", "svc"].contains(&kind) || name.is_empty() || name.contains('/') {
            bail!("{text:?} names no Service; write service/NAME");
        }
        Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
    }
}

impl std::fmt::Display for ServiceName {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "service/{} in {}", self.name, self.namespace)
    }
}

/// The Services that name a workload.
pub(crate) struct NamedServices {
    pub(crate) names: Vec<ServiceName>,
    /// Among how many they were looked for.
    pub(crate) among: usize,
}

/// Which controllers have written `EndpointSlice`s of a Service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SliceWriters {
    pub(crate) is_ours_there: bool,
    pub(crate) is_kubernetes_there: bool,
}

impl SliceWriters {
    pub(crate) const OURS_ALONE: Self = Self { is_ours_there: true, is_kubernetes_there: false };
    pub(crate) const KUBERNETES_ALONE: Self = Self { is_ours_there: false, is_kubernetes_there: true };
}

/// What came of waiting for the writers of a Service's slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SliceWait {
    /// The slices are of the writers that were waited for.
    Stand,
    /// They were not in time.
    Late,
    /// The Service was deleted meanwhile.
    Deleted,
}

impl Cluster {
    /// In a namespace, or in all of them.
    pub(crate) async fn services_that_name_a_workload(
        &self,
        namespace: Option<&str>,
    ) -> Result<NamedServices, kube::Error> {
        let api: Api<Service> = match namespace {
            Some(namespace) => self.api_in(namespace),
            None => Api::all(self.client.clone()),
        };
        let services = api.list(&ListParams::default()).await?.items;
        let among = services.len();
        let ours = services.into_iter().filter(|one| annotation(one, REVISION_ANNOTATION).is_some());
        let names = ours.filter_map(|one| {
            Some(ServiceName { namespace: one.metadata.namespace?, name: one.metadata.name? })
        });
        Ok(NamedServices { names: names.collect(), among })
    }

    /// `None`: there is no such Service.
    pub(crate) async fn find_service(&self, name: &ServiceName) -> anyhow::Result<Option<Service>> {
        let found = self.api_in::<Service>(&name.namespace).get_opt(&name.name).await;
        found.with_context(|| format!("{name} could not be read"))
    }

    pub(crate) async fn service(&self, name: &ServiceName) -> anyhow::Result<Service> {
        let found = self.find_service(name).await?;
        found.with_context(|| format!("there is no {name}; say in which namespace it is with -n"))
    }

    /// Changes a Service as it was when `change` looked at it, or not at all.
    pub(crate) async fn change_service(
        &self,
        name: &ServiceName,
        change: impl Fn(&Service) -> Value,
    ) -> anyhow::Result<Service> {
        let api = self.api_in::<Service>(&name.namespace);
        let parameters =
            PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        for _ in 0..ATTEMPTS_MAX {
            let service = self.service(name).await?;
            let mut patch = change(&service);
            // The API server refuses the change if the Service was written meanwhile.
            patch["metadata"]["resourceVersion"] = json!(service.metadata.resource_version);
            match api.patch(&name.name, &parameters, &Patch::Merge(patch)).await {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                written => return written.with_context(|| format!("{name} could not be changed")),
            }
        }
        bail!("{name} is written by another client all the time; try again")
    }

    pub(crate) async fn slice_writers(&self, name: &ServiceName) -> anyhow::Result<SliceWriters> {
        let selected = ListParams::default().labels(&format!("kubernetes.io/service-name={}", name.name));
        let slices = self.api_in::<EndpointSlice>(&name.namespace).list(&selected).await;
        let slices = slices.with_context(|| format!("endpoints of {name} could not be read"))?;
        let mut writers = SliceWriters::default();
        for slice in slices {
            let labels = slice.metadata.labels.unwrap_or_default();
            let writer = labels.get(SLICE_WRITER_LABEL).map_or("", String::as_str);
            writers.is_ours_there |= writer == SLICE_WRITER;
            writers.is_kubernetes_there |= KUBERNETES.contains(&writer);
        }
        Ok(writers)
    }

    /// Waits until the slices are of these writers.
    pub(crate) async fn wait_for_writers(
        &self,
        name: &ServiceName,
        wanted: SliceWriters,
        patience: Duration,
    ) -> anyhow::Result<SliceWait> {
        for _ in 0..looks(patience) {
            if self.slice_writers(name).await? == wanted {
                return Ok(SliceWait::Stand);
            }
            if self.find_service(name).await?.is_none() {
                return Ok(SliceWait::Deleted);
            }
            tokio::time::sleep(LOOKS_EVERY).await;
        }
        Ok(SliceWait::Late)
    }

    /// The one workload whose pods a Service selects.
    pub(crate) async fn workload_of(
        &self,
        name: &ServiceName,
        selector: &ServiceSelector,
    ) -> anyhow::Result<String> {
        let found: Vec<String> = self
            .templates(&name.namespace)
            .await?
            .into_iter()
            .filter(|(_, template)| selects(selector, template))
            .map(|(workload, _)| workload)
            .collect();
        match found.as_slice() {
            [only] => Ok(only.clone()),
            [] => bail!(
                "{name} selects pods of no Deployment or StatefulSet; name its workload with --workload KIND/NAME"
            ),
            several => bail!(
                "{name} selects pods of {}; one Service cannot be served for several workloads, so make one for each",
                several.join(", ")
            ),
        }
    }

    /// Deployments and StatefulSets, with the labels of their pods.
    async fn templates(&self, namespace: &str) -> anyhow::Result<Vec<(String, ServiceSelector)>> {
        let everything = ListParams::default();
        let labels = |template: &PodTemplateSpec| {
            template.metadata.as_ref().and_then(|metadata| metadata.labels.clone()).unwrap_or_default()
        };
        let mut templates = Vec::new();
        let deployments = self.api_in::<Deployment>(namespace).list(&everything).await;
        for one in deployments.with_context(|| format!("Deployments of {namespace} could not be read"))? {
            let (Some(name), Some(spec)) = (one.metadata.name, one.spec) else { continue };
            templates.push((format!("deployment/{name}"), labels(&spec.template)));
        }
        let sets = self.api_in::<StatefulSet>(namespace).list(&everything).await;
        for one in sets.with_context(|| format!("StatefulSets of {namespace} could not be read"))? {
            let (Some(name), Some(spec)) = (one.metadata.name, one.spec) else { continue };
            templates.push((format!("statefulset/{name}"), labels(&spec.template)));
        }
        Ok(templates)
    }

    /// What the selector of a Service was, or what would select its workload's pods.
    pub(crate) async fn former_selector(
        &self,
        name: &ServiceName,
        service: &Service,
    ) -> anyhow::Result<ServiceSelector> {
        if let Some(kept) =
            annotation(service, FORMER_SELECTOR).and_then(|text| serde_json::from_str(text).ok())
        {
            return Ok(kept);
        }
        let workload = annotation(service, REVISION_ANNOTATION).unwrap_or_default();
        let (kind, workload) = workload.split_once('/').unwrap_or(("deployment", workload));
        let namespace = &name.namespace;
        let selector = match kind {
            "deployment" => {
                let found = self.api_in::<Deployment>(namespace).get_opt(workload).await?;
                found.and_then(|found| found.spec).map(|spec| spec.selector)
            }
            "statefulset" => {
                let found = self.api_in::<StatefulSet>(namespace).get_opt(workload).await?;
                found.and_then(|found| found.spec).map(|spec| spec.selector)
            }
            _ => None,
        };
        let labels = selector.and_then(|selector| selector.match_labels).unwrap_or_default();
        if labels.is_empty() {
            bail!("what {name} selected is not known; say it with --selector KEY=VALUE");
        }
        Ok(labels)
    }
}

/// How often something is looked at in this time.
pub(crate) fn looks(patience: Duration) -> u128 {
    patience.as_millis() / LOOKS_EVERY.as_millis() + 1
}

pub(crate) fn annotation<'a>(service: &'a Service, key: &str) -> Option<&'a str> {
    service.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

pub(crate) fn selector(service: &Service) -> ServiceSelector {
    service.spec.as_ref().and_then(|spec| spec.selector.clone()).unwrap_or_default()
}

/// Names the workload, and keeps what the selector is.
pub(crate) fn naming(service: &Service, workload: &str) -> Value {
    let selector = selector(service);
    let mut annotations = json!({REVISION_ANNOTATION: workload});
    if !selector.is_empty() {
        annotations[FORMER_SELECTOR] = json!(json!(selector).to_string());
    }
    json!({"metadata": {"annotations": annotations}})
}

/// What [`naming`] changed, as it was.
pub(crate) fn unnaming(former: &Service) -> Value {
    let annotations = json!({
        REVISION_ANNOTATION: annotation(former, REVISION_ANNOTATION),
        FORMER_SELECTOR: annotation(former, FORMER_SELECTOR),
    });
    json!({"metadata": {"annotations": annotations}})
}

pub(crate) fn without_selector() -> Value {
    json!({"spec": {"selector": null}})
}

/// The change by which Kubernetes serves a Service again.
pub(crate) fn given_back(selector: &ServiceSelector) -> Value {
    let annotations = json!({REVISION_ANNOTATION: null, FORMER_SELECTOR: null});
    json!({"metadata": {"annotations": annotations}, "spec": {"selector": selector}})
}

fn selects(selector: &ServiceSelector, labels: &ServiceSelector) -> bool {
    !selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(annotations: &Value, selector: &Value) -> Service {
        serde_json::from_value(
            json!({"metadata": {"annotations": annotations}, "spec": {"selector": selector}}),
        )
        .expect("a Service")
    }

    fn changed(service: &Service, patch: &Value) -> Service {
        let mut value = serde_json::to_value(service).expect("it can be written");
        merge(&mut value, patch);
        serde_json::from_value(value).expect("a Service")
    }

    /// As the API server does with such a patch.
    fn merge(value: &mut Value, patch: &Value) {
        let Some(changes) = patch.as_object() else {
            *value = patch.clone();
            return;
        };
        if !value.is_object() {
            *value = json!({});
        }
        for (key, change) in changes {
            if change.is_null() {
                value.as_object_mut().expect("it is one").remove(key);
            } else {
                merge(&mut value[key], change);
            }
        }
    }

    #[test]
    fn a_service_is_named_as_kubectl_does() {
        for text in ["hello", "service/hello", "svc/hello", "services/hello"] {
            assert_eq!(ServiceName::read("shop", text).expect("a Service").name, "hello");
        }
        for text in ["deployment/hello", "service/", "a/b/c", ""] {
            ServiceName::read("shop", text).expect_err("it names no Service");
        }
    }

    #[test]
    fn a_service_that_is_given_back_is_as_before_the_adoption() {
        let before = service(&json!({"team": "a"}), &json!({"app": "hello", "tier": "web"}));
        let named = changed(&before, &naming(&before, "deployment/hello"));
        assert_eq!(annotation(&named, REVISION_ANNOTATION), Some("deployment/hello"));
        assert_eq!(changed(&named, &unnaming(&before)), before, "before it was ours");
        let adopted = changed(&named, &without_selector());
        assert!(selector(&adopted).is_empty());
        let kept: ServiceSelector =
            serde_json::from_str(annotation(&adopted, FORMER_SELECTOR).expect("it is kept")).expect("labels");
        assert_eq!(changed(&adopted, &given_back(&kept)), before);
    }

    #[test]
    fn a_service_without_selector_selects_nobody() {
        let labels = ServiceSelector::from([("app".to_owned(), "hello".to_owned())]);
        assert!(selects(&labels, &labels) && !selects(&ServiceSelector::new(), &labels));
    }
}
