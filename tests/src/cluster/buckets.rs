//! Who decides about which bucket of workloads, and workloads of each.

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::ListParams;
use vocabulary::{Bucket, Ownership, RevisionName, bucket_of_lease};

use super::{PATIENCE, SYSTEM, TestNamespace, WorkloadPlan, kubectl};
use crate::wait::eventually;

impl TestNamespace {
    /// Who decides about which bucket.
    pub async fn bucket_owners(&self) -> BTreeMap<Bucket, String> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), SYSTEM);
        let leases = leases.list(&ListParams::default()).await.expect("leases can be listed").items;
        let owners = leases.into_iter().filter_map(|lease| {
            let bucket = bucket_of_lease(&lease.metadata.name?)?;
            let holder = lease.spec?.holder_identity.filter(|holder| !holder.is_empty())?;
            Some((bucket, holder))
        });
        owners.collect()
    }

    /// Rolls autoscalers out that hash workloads to so many buckets, and waits until each of these has an
    /// owner.
    pub async fn set_buckets(&self, count: u16) -> BTreeMap<Bucket, String> {
        let variable = format!("AUTOSCALER_BUCKETS={count}");
        kubectl(&["-n", SYSTEM, "set", "env", "deployment/autoscaler", &variable]).await;
        kubectl(&["-n", SYSTEM, "rollout", "status", "deployment/autoscaler", "--timeout=90s"]).await;
        self.settled_owner().await;
        eventually("each bucket has an owner", PATIENCE, || async {
            let owners = self.bucket_owners().await;
            if owners.len() == usize::from(count) { Ok(owners) } else { Err(format!("{owners:?}")) }
        })
        .await
    }

    /// Plans of Deployments whose names begin with `prefix`, the first in bucket 0 of two, the second in
    /// bucket 1.
    pub fn plans_in_each_bucket(&self, prefix: &str) -> [WorkloadPlan; 2] {
        let plan_in = |bucket: u16| {
            let mut names = (0..).map(|number| format!("{prefix}-{number}"));
            let name = names.find(|name| self.bucket_of_two(name) == Bucket(bucket));
            WorkloadPlan::new(&name.expect("half of them are"))
        };
        [plan_in(0), plan_in(1)]
    }

    fn bucket_of_two(&self, name: &str) -> Bucket {
        let revision = RevisionName::new(&self.name, "deployment", name).expect("a name");
        Ownership { epochs: BTreeMap::new(), buckets: 2 }.bucket_of(&revision)
    }
}
