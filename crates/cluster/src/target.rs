//! The pods of a workload of class hpa as they are at one moment, and whose the samples are that were
//! measured in them.
//!
//! Samples know pods by name, the algorithm by number, and a number means something within one round only.

use std::collections::{BTreeMap, BTreeSet};

use scaling::hpa::{HpaPods, PodSample, PodSamples, Selection, TargetPods};
use vocabulary::{MilliValue, PodCount, PodId};

use crate::moment::Moment;
use crate::resources::scaled_pod::ScaledPodRecord;
use crate::resources::selector::Selector;

/// What the index knows of a workload's pods.
#[derive(Clone, Debug, Default)]
pub struct TargetRecord {
    /// What the workload selects its pods by.
    pub selector: Selector,
    /// The pods that the selector selects, by their names in the namespace.
    pub pods: BTreeMap<String, ScaledPodRecord>,
    /// The pods that the workload says there are (`status.replicas`).
    pub present: PodCount,
    /// Another workload of this class selects one of the pods too.
    pub is_shared: bool,
}

/// One sample of a metric, by the name of its pod, which may be gone.
#[derive(Clone, Copy, Debug)]
pub struct NamedSample<'a> {
    /// The name of the pod in its namespace.
    pub pod: &'a str,
    /// What was measured in the pod.
    pub value: MilliValue,
    /// When the measurement ended, by the wall clock.
    pub at: jiff::Timestamp,
    /// Over how long a time it was measured.
    pub window: std::time::Duration,
}

impl TargetRecord {
    /// The pods as the algorithm looks at them at this moment.
    pub fn pods(&self, moment: Moment) -> TargetPods {
        let pods = self.pods.values().zip(0..).map(|(pod, number)| pod.on_axis(PodId(number), moment));
        let selection = if self.selector.is_empty() {
            Selection::Absent
        } else if self.is_shared {
            Selection::Ambiguous
        } else {
            Selection::Unique
        };
        TargetPods { pods: HpaPods::new(pods.collect()), present: self.present, selection }
    }

    /// Those of strangers (the pod has gone meanwhile) count too, as in Kubernetes, under numbers of their
    /// own.
    pub fn samples(&self, samples: &[NamedSample<'_>], moment: Moment) -> PodSamples {
        let own: BTreeMap<&str, u32> = self.pods.keys().map(String::as_str).zip(0..).collect();
        let strangers: BTreeSet<&str> =
            samples.iter().map(|sample| sample.pod).filter(|name| !own.contains_key(name)).collect();
        let first = u32::try_from(own.len()).unwrap_or(u32::MAX);
        let strangers: BTreeMap<&str, u32> = strangers.into_iter().zip(first..).collect();
        let numbered = samples.iter().filter_map(|sample| {
            let number = own.get(sample.pod).or_else(|| strangers.get(sample.pod))?;
            let NamedSample { value, window, .. } = *sample;
            Some(PodSample { pod: PodId(*number), value, at: moment.on_axis(sample.at), window })
        });
        PodSamples::new(numbered.collect())
    }
}
