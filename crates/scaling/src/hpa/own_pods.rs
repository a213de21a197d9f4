//! What would the metrics say if there were only the pods that the class asked for by itself?
//!
//! Pods above that count were asked for early: by a forecast, or by a schedule. They take a part of the load,
//! so each average over all pods is lower than it would be. Within the tolerance a sync would then return the
//! class's own count, as if that were enough, and below it the count would fall. So the class is shown no
//! more pods than it asked for, and the load of the others is divided among these.
//!
//! Memory and other resources are not divided: a pod takes most of them whether it has load or not. Of these
//! the values of the shown pods count, as they are.

use std::collections::{BTreeMap, BTreeSet};

use settings::hpa::{HpaSpec, MetricSpec, ResourceName};
use vocabulary::{MilliValue, PodCount, PodId, Timestamp};

use super::answers::TargetPods;
use super::pods::{HpaPod, HpaPodPhase, HpaPods, PodGroup};
use super::samples::{MetricSamples, PodSample, PodSamples};

/// Leaves out the pods above `own`, the count that the class asked for last by itself. There is one entry of
/// samples for each metric of the spec.
pub(crate) fn leave_out_early_pods(
    target: &mut TargetPods,
    samples: &mut [MetricSamples],
    spec: &HpaSpec,
    own: PodCount,
    now: Timestamp,
) {
    target.present = target.present.min(own);
    let shown = usize::try_from(own.value()).unwrap_or(usize::MAX);
    if target.pods.as_slice().len() <= shown {
        return;
    }
    let pods = DividedPods::of(&target.pods, shown);
    for (metric, samples) in spec.metrics.iter().zip(samples) {
        if let MetricSamples::PerPod(of_all) = samples {
            let load = PodLoad::of(metric, of_all, spec, now);
            *of_all = load.on_shown(&pods);
        }
    }
    target.pods = HpaPods::new(pods.shown);
}

/// What all pods together use of the processors, by the first metric that asks for it, as far as that says
/// something about load; `None` if no metric does, or no pod counts.
pub(crate) fn cpu_in_use(
    pods: &HpaPods,
    samples: &[MetricSamples],
    spec: &HpaSpec,
    now: Timestamp,
) -> Option<MilliValue> {
    let (_, samples) = spec.metrics.iter().zip(samples).find(|(metric, _)| metric.is_cpu())?;
    let MetricSamples::PerPod(samples) = samples else { return None };
    // Both are in the order of the pods' ids.
    let mut samples = samples.iter().peekable();
    let used = pods.iter().filter_map(|pod| {
        while samples.next_if(|sample| sample.pod < pod.pod).is_some() {}
        let sample = samples.next_if(|sample| sample.pod == pod.pod);
        let group = pod.group(Some(&ResourceName::Cpu), sample, &spec.settings, now);
        let used = i128::from(sample?.value.value());
        (group == PodGroup::Ready).then_some(used)
    });
    used.reduce(|sum, more| sum + more).map(MilliValue::saturated_from)
}

/// The pods that the class is shown, and the others.
struct DividedPods {
    shown: Vec<HpaPod>,
    early: Vec<HpaPod>,
}

impl DividedPods {
    /// Ready pods are shown first, those that have been ready for longest before others.
    fn of(pods: &HpaPods, most: usize) -> Self {
        let mut shown: Vec<HpaPod> = pods.iter().cloned().collect();
        shown.sort_by_key(|pod| {
            let has_ended = matches!(pod.phase, HpaPodPhase::Succeeded | HpaPodPhase::Failed);
            let since = pod.ready.map(|ready| ready.since);
            let is_pending = pod.phase == HpaPodPhase::Pending;
            (pod.is_deleted || has_ended, !pod.is_running_and_ready(), is_pending, since, pod.pod)
        });
        let early = shown.split_off(most.min(shown.len()));
        Self { shown, early }
    }
}

/// The values of one metric by pod.
struct PodLoad<'a> {
    values: BTreeMap<PodId, PodSample>,
    resource: Option<&'a ResourceName>,
    spec: &'a HpaSpec,
    now: Timestamp,
    /// Whether pods divide among them what there is.
    is_divided: bool,
}

impl<'a> PodLoad<'a> {
    fn of(metric: &'a MetricSpec, samples: &PodSamples, spec: &'a HpaSpec, now: Timestamp) -> Self {
        let (resource, is_divided) = match metric {
            MetricSpec::Resource { resource, .. } => (Some(resource), *resource == ResourceName::Cpu),
            MetricSpec::Pods { .. }
            | MetricSpec::Own { .. }
            | MetricSpec::Object { .. }
            | MetricSpec::External { .. } => (None, true),
        };
        let values = samples.iter().map(|sample| (sample.pod, *sample)).collect();
        Self { values, resource, spec, now, is_divided }
    }

    /// The samples without those of early pods, whose load the shown ones have instead.
    fn on_shown(&self, pods: &DividedPods) -> PodSamples {
        let early: BTreeSet<PodId> = pods.early.iter().map(|pod| pod.pod).collect();
        let takers: BTreeSet<PodId> = self.counted(&pods.shown).map(|sample| sample.pod).collect();
        let load: i128 = if self.is_divided {
            self.counted(&pods.early).map(|sample| i128::from(sample.value.value())).sum()
        } else {
            0
        };
        // Without a pod that counts nothing is proposed, whatever the load is.
        let count = i128::try_from(takers.len()).unwrap_or(i128::MAX).max(1);
        let (each, mut rest) = (load.div_euclid(count), load.rem_euclid(count));
        let shown = self.values.values().filter(|sample| !early.contains(&sample.pod));
        let samples = shown.map(|sample| {
            if !takers.contains(&sample.pod) {
                return *sample;
            }
            let more = each + i128::from(rest > 0);
            rest = (rest - 1).max(0);
            let value = MilliValue::saturated_from(i128::from(sample.value.value()) + more);
            PodSample { value, ..*sample }
        });
        PodSamples::new(samples.collect())
    }

    /// The samples of those of these pods that count: what a pod uses to start says nothing of load.
    fn counted<'s>(&'s self, pods: &'s [HpaPod]) -> impl Iterator<Item = &'s PodSample> {
        pods.iter().filter_map(|pod| {
            let sample = self.values.get(&pod.pod)?;
            let group = pod.group(self.resource, Some(sample), &self.spec.settings, self.now);
            (group == PodGroup::Ready).then_some(sample)
        })
    }
}

#[cfg(test)]
mod tests;
