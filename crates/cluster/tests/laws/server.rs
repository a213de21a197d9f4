//! A made-up API server, with the controllers of Kubernetes that act upon the same objects: one makes pods to
//! a workload's count, one writes the slices of a Service that has a selector.

use std::collections::BTreeMap;

use cluster::resources::ObjectKey;
use cluster::resources::workload::ObjectVersion;
use cluster::slices::SliceChange;
use cluster::{ClusterWrite, Failure, LEASE, LeaseRecord, ScaleAnswer, WriteAnswer, read_lease, scale};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use orchestration::OrderOutcome;
use serde_json::{Value, json};
use vocabulary::PodCount;

/// A change that was written, with the slice that stands from then on.
type SliceAnswer = (SliceChange, Option<EndpointSlice>);

/// Objects that are watched together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Collection {
    Services,
    Deployments,
    Pods,
    Activators,
    /// Slices that have ebb's label.
    Slices,
    OtherSlices,
    Leases,
}

impl Collection {
    pub(crate) const ALL: [Self; 7] = [
        Self::Services,
        Self::Deployments,
        Self::Pods,
        Self::Activators,
        Self::Slices,
        Self::OtherSlices,
        Self::Leases,
    ];
}

/// One change, as a watch shows it; `None` for an object that is gone.
#[derive(Clone, Debug)]
pub(crate) struct ServerChange {
    pub(crate) collection: Collection,
    pub(crate) key: ObjectKey,
    pub(crate) object: Option<Value>,
}

#[derive(Debug, Default)]
pub(crate) struct ApiServer {
    objects: BTreeMap<(Collection, ObjectKey), Value>,
    /// All changes, in the order in which they were made.
    pub(crate) history: Vec<ServerChange>,
    version: u64,
    pods_made: u64,
    /// The time since the world began, in whole seconds.
    pub(crate) seconds: i64,
}

pub(crate) fn key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey { namespace: namespace.to_owned(), name: name.to_owned() }
}

/// The Service and the Deployment that the world is about.
pub(crate) fn hello() -> ObjectKey {
    key("shop", "hello")
}

fn key_of(object: &Value) -> ObjectKey {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    ObjectKey { namespace: text("namespace"), name: text("name") }
}

impl ApiServer {
    pub(crate) fn get(&self, collection: Collection, key: &ObjectKey) -> Option<&Value> {
        self.objects.get(&(collection, key.clone()))
    }

    pub(crate) fn all(&self, collection: Collection) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(move |((of, _), _)| *of == collection).map(|(_, object)| object)
    }

    /// Writes an object, and returns what is there now.
    pub(crate) fn put(&mut self, collection: Collection, mut object: Value) -> Value {
        self.version += 1;
        let key = key_of(&object);
        let metadata =
            self.get(collection, &key).map(|former| former["metadata"].clone()).unwrap_or_default();
        let made = jiff::Timestamp::from_second(1_800_000_000 + self.seconds).expect("a time of our days");
        for (field, new) in
            [("uid", json!(format!("uid-{}", self.version))), ("creationTimestamp", json!(made.to_string()))]
        {
            let former = &metadata[field];
            object["metadata"][field] = if former.is_null() { new } else { former.clone() };
        }
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.objects.insert((collection, key.clone()), object.clone());
        self.history.push(ServerChange { collection, key, object: Some(object.clone()) });
        object
    }

    pub(crate) fn remove(&mut self, collection: Collection, key: &ObjectKey) {
        if self.objects.remove(&(collection, key.clone())).is_some() {
            self.version += 1;
            self.history.push(ServerChange { collection, key: key.clone(), object: None });
        }
    }

    /// Writes an object over this version, or makes it where there is none.
    fn put_over(&mut self, collection: Collection, object: Value) -> Result<Value, Failure> {
        let over = object["metadata"]["resourceVersion"].clone();
        match self.get(collection, &key_of(&object)) {
            None if over.is_null() => {}
            None => return Err(Failure::Gone("it is not there".to_owned())),
            Some(present) if present["metadata"]["resourceVersion"] == over => {}
            Some(_) => return Err(Failure::Conflict),
        }
        Ok(self.put(collection, object))
    }

    /// Deletes an object of this version; one that is gone already is no failure.
    fn delete(
        &mut self,
        collection: Collection,
        key: &ObjectKey,
        version: Option<&str>,
    ) -> Result<(), Failure> {
        let Some(present) = self.get(collection, key) else { return Ok(()) };
        if version.is_some_and(|version| present["metadata"]["resourceVersion"] != version) {
            return Err(Failure::Conflict);
        }
        self.remove(collection, key);
        Ok(())
    }

    /// Performs a write whose right is in force.
    pub(crate) fn perform(&mut self, write: ClusterWrite) -> WriteAnswer {
        match write {
            ClusterWrite::Count { write, subject, hints: _ } => {
                let answer = self.scale(&subject.uid, write.from, write.to);
                WriteAnswer::Count(write.revision, answer)
            }
            ClusterWrite::Slices { fence: _, revision, changes } => {
                let (written, how) = self.write_slices(changes);
                WriteAnswer::Slices(revision, written, how)
            }
            ClusterWrite::Takeover { fence: _, revision, takeover } => {
                let deleted = takeover.leftovers.iter().try_for_each(|leftover| {
                    self.delete(Collection::OtherSlices, &leftover.key, leftover.resource_version.as_deref())
                });
                WriteAnswer::Takeover(revision, takeover, deleted.map(|()| None))
            }
            ClusterWrite::Lease(which, name, write) => {
                let spec = json!({
                    "holderIdentity": write.holder,
                    "leaseDurationSeconds": LEASE.as_secs(),
                    "leaseTransitions": write.transitions,
                });
                let metadata = json!({
                    "namespace": "ebb-system",
                    "name": name,
                    "resourceVersion": write.over,
                    "annotations": write.notes,
                });
                let written = self.put_over(Collection::Leases, json!({"metadata": metadata, "spec": spec}));
                WriteAnswer::Lease(which, written.map(|lease| lease_record(&lease)))
            }
            ClusterWrite::Revision { .. } => unreachable!("this installation is ebb's own"),
            ClusterWrite::Event(_) => WriteAnswer::Event(Ok(())),
        }
    }

    fn scale(&mut self, uid: &str, from: PodCount, to: PodCount) -> Result<ScaleAnswer, Failure> {
        let gone = || Failure::Gone("deployments.apps \"hello\" not found".to_owned());
        let mut present = self.get(Collection::Deployments, &hello()).cloned().ok_or_else(gone)?;
        let found = count_of(&present);
        // Kubernetes leaves a count of zero out.
        let spec = if found == PodCount::ZERO { json!({}) } else { json!({"replicas": found.value()}) };
        let mut scaled = json!({"metadata": present["metadata"], "spec": spec});
        if json_patch::patch(&mut scaled, &scale::patch(uid, from, to)).is_ok() {
            present["spec"]["replicas"] = scaled["spec"]["replicas"].clone();
            let written = self.put(Collection::Deployments, present);
            return Ok(ScaleAnswer { outcome: OrderOutcome::Done, version: version_of(&written) });
        }
        if present["metadata"]["uid"] != uid {
            return Ok(OrderOutcome::Gone.into());
        }
        if found == to {
            return Ok(ScaleAnswer { outcome: OrderOutcome::Done, version: version_of(&present) });
        }
        Ok(OrderOutcome::Conflict { found }.into())
    }

    fn write_slices(&mut self, changes: Vec<SliceChange>) -> (Vec<SliceAnswer>, Result<(), Failure>) {
        let mut written = Vec::new();
        for change in changes {
            match self.write_slice(&change) {
                Ok(slice) => written.push((change, slice)),
                Err(failure) => return (written, Err(failure)),
            }
        }
        (written, Ok(()))
    }

    fn write_slice(&mut self, change: &SliceChange) -> Result<Option<EndpointSlice>, Failure> {
        match change {
            SliceChange::Create(slice) | SliceChange::Replace(slice) => {
                let object = serde_json::to_value(slice).expect("a slice can be written");
                let written = self.put_over(Collection::Slices, object)?;
                Ok(Some(serde_json::from_value(written).expect("it is a slice")))
            }
            SliceChange::Delete(slice) => {
                let version = slice.metadata.resource_version.as_deref();
                self.delete(Collection::Slices, &ObjectKey::of(&slice.metadata), version)?;
                Ok(None)
            }
        }
    }

    /// The controllers of Kubernetes do what is theirs.
    pub(crate) fn run_controllers(&mut self) {
        self.run_pods();
        self.run_slices();
    }

    /// Pods follow the count; each is ready from the next look on.
    fn run_pods(&mut self) {
        let Some(deployment) = self.get(Collection::Deployments, &hello()).cloned() else { return };
        let wanted = usize::try_from(count_of(&deployment).value()).expect("few");
        let mut pods: Vec<Value> = self.all(Collection::Pods).cloned().collect();
        for pod in &mut pods {
            if pod["status"]["phase"] == "Pending" {
                pod["status"] = running(pod["status"]["podIP"].as_str().unwrap_or_default());
                self.put(Collection::Pods, pod.clone());
            }
        }
        for pod in pods.iter().skip(wanted) {
            self.remove(Collection::Pods, &key_of(pod));
        }
        for _ in pods.len()..wanted {
            self.pods_made += 1;
            let pod = new_pod(self.pods_made);
            self.put(Collection::Pods, pod);
        }
        let status = json!({"replicas": wanted, "readyReplicas": pods.len().min(wanted)});
        if deployment["status"] != status {
            let mut deployment = deployment;
            deployment["status"] = status;
            self.put(Collection::Deployments, deployment);
        }
    }

    /// A Service with a selector has a slice of Kubernetes' own, which stays when the selector goes.
    fn run_slices(&mut self) {
        let Some(service) = self.get(Collection::Services, &hello()) else { return };
        if service["spec"]["selector"].is_null() {
            return;
        }
        let ready = self.all(Collection::Pods).filter(|pod| pod["status"]["phase"] == "Running");
        let endpoints: Vec<Value> = ready
            .map(|pod| {
                json!({
                    "addresses": [pod["status"]["podIP"]],
                    "conditions": {"ready": true},
                    "targetRef": {"kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]},
                })
            })
            .collect();
        let labels = json!({
            "kubernetes.io/service-name": "hello",
            (vocabulary::SLICE_WRITER_LABEL): vocabulary::SELECTOR_SLICE_WRITER,
        });
        let metadata = json!({"namespace": "shop", "name": "hello-k", "labels": labels});
        let former = self.get(Collection::OtherSlices, &key("shop", "hello-k"));
        if former.is_none_or(|former| former["endpoints"] != json!(endpoints)) {
            let slice = json!({"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints});
            self.put(Collection::OtherSlices, slice);
        }
    }
}

/// The count that a Deployment is to have.
pub(crate) fn count_of(deployment: &Value) -> PodCount {
    let count = deployment["spec"]["replicas"].as_u64().unwrap_or_default();
    PodCount::new(u32::try_from(count).expect("few"))
}

fn version_of(object: &Value) -> Option<ObjectVersion> {
    let resource_version = object["metadata"]["resourceVersion"].as_str().map(ToOwned::to_owned);
    ObjectVersion::of(&ObjectMeta { resource_version, ..ObjectMeta::default() })
}

pub(crate) fn lease_record(lease: &Value) -> LeaseRecord {
    read_lease(&serde_json::from_value(lease.clone()).expect("a Lease"))
}

fn running(address: &str) -> Value {
    json!({"phase": "Running", "podIP": address, "conditions": [{"type": "Ready", "status": "True"}]})
}

fn new_pod(number: u64) -> Value {
    let env = json!([{"name": "USER_PORT", "value": "8080"}]);
    let app = json!({"name": "app", "ports": [{"name": "http", "containerPort": 8080}]});
    json!({
        "metadata": {"namespace": "shop", "name": format!("hello-{number}"), "labels": {"app": "hello"}},
        "spec": {"containers": [app, {"name": vocabulary::QUEUE_PROXY, "env": env}]},
        "status": {"phase": "Pending", "podIP": format!("10.0.{}.{}", number / 250, number % 250)},
    })
}

/// An activator that is ready.
pub(crate) fn activator(name: &str, address: &str) -> Value {
    json!({
        "metadata": {"namespace": "ebb-system", "name": name},
        "spec": {"containers": []},
        "status": running(address),
    })
}

pub(crate) fn deployment(replicas: u32) -> Value {
    let app = json!({"name": "app", "ports": [{"name": "http", "containerPort": 8080}]});
    let template = json!({"metadata": {"labels": {"app": "hello"}}, "spec": {"containers": [app]}});
    let annotations = json!({"autoscaling.knative.dev/window": "10s", "autoscaling.knative.dev/target": "1"});
    json!({
        "metadata": {"namespace": "shop", "name": "hello", "annotations": annotations},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "hello"}}, "template": template},
    })
}

/// A Service that Kubernetes serves, or that is ebb's to serve.
pub(crate) fn service(owner: ServiceOwner) -> Value {
    let (annotations, selector) = match owner {
        ServiceOwner::Kubernetes => (json!({}), json!({"app": "hello"})),
        ServiceOwner::Ebb => (json!({(vocabulary::REVISION_ANNOTATION): "hello"}), Value::Null),
    };
    json!({
        "metadata": {"namespace": "shop", "name": "hello", "annotations": annotations},
        "spec": {
            "clusterIP": "10.96.0.7",
            "clusterIPs": ["10.96.0.7"],
            "ipFamilies": ["IPv4"],
            "ports": [{"name": "http", "port": 80, "targetPort": 8080}],
            "selector": selector,
        },
    })
}

/// The program that is to write a Service's endpoints, as people ask for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServiceOwner {
    Kubernetes,
    Ebb,
}
