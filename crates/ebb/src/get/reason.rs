//! Why is the count what it is *now*? In a few words; `ebb explain` has the rest.

use autoscaler::api_types::{RevisionSummary, ShadowView};
use vocabulary::PodCount;

/// About the present, never about how it came to be; and how many pods are heard, if not all are.
pub(super) fn reason(now: &RevisionSummary) -> String {
    let text = standing(now);
    match &now.links {
        Some(links) if links.up < links.expected => {
            format!("{} of {} pods are linked; {text}", links.up, links.expected)
        }
        Some(_) | None => text,
    }
}

fn standing(now: &RevisionSummary) -> String {
    // The pods of a workload in shadow that was not adopted are not linked, which is no reason to wait for
    // one.
    let why_not_ready = now.why_not_ready.as_ref().filter(|_| now.shadow.is_none() || has_pods(now));
    if let Some(why) = why_not_ready {
        return why.clone();
    }
    if let Some(shadow) = &now.shadow {
        return in_shadow(shadow, now.left_alone.as_deref()) + &beside(now);
    }
    if now.wanted == PodCount::ZERO {
        return asleep(now);
    }
    let (ready, wanted) = (now.ready_pods, now.wanted);
    if ready < wanted {
        return starting(now, wanted.value() - ready.value());
    }
    if ready > wanted {
        return format!(
            "{wanted} wanted, {} {}",
            ready.value() - wanted.value(),
            one_or_more(ready.value() - wanted.value(), "ends", "end")
        );
    }
    match (now.desired, &now.why_not_zero) {
        (Some(PodCount::ZERO), Some(why)) => format!("{ready} ready, none needed: {why}"),
        (Some(desired), _) if desired == wanted => format!("{ready} ready, as needed"),
        (Some(desired), _) if desired > wanted => {
            format!("{ready} ready, {desired} needed: max-scale allows no more")
        }
        (Some(desired), _) => format!("{ready} ready, {desired} needed: {}", now.last_reason),
        (None, _) => format!("{ready} ready, no load measured yet"),
    }
}

/// `missing` pods are wanted and not ready.
fn starting(now: &RevisionSummary, missing: u32) -> String {
    let ready = now.ready_pods;
    match now.awaiting_core_pods.value().min(missing) {
        0 => format!("{ready} ready, {missing} starting"),
        waiting => format!("{ready} ready, {} starting, {waiting} waiting for a core", missing - waiting),
    }
}

fn has_pods(now: &RevisionSummary) -> bool {
    [now.ready_pods, now.not_ready_pods, now.pending_pods].iter().any(|pods| *pods != PodCount::ZERO)
}

/// Nothing is done, so there is nothing to explain but what would be.
fn in_shadow(shadow: &ShadowView, left_alone: Option<&str>) -> String {
    let why = left_alone.unwrap_or("in shadow");
    match (&shadow.last_difference, shadow.differs_ms) {
        (Some(last), Some(_)) => format!("{why}: {} would be wanted: {}", last.ours, last.why),
        (_, None) | (None, _) if shadow.compared == 0 => format!("{why}: nothing decided yet"),
        (_, None) | (None, _) => format!("{why}: as many as would be wanted"),
    }
}

/// What another autoscaler wants of the same pods, beside ours.
fn beside(now: &RevisionSummary) -> String {
    let Some(other) = &now.other_autoscaler else { return String::new() };
    let metrics = if other.metrics.is_empty() { String::new() } else { format!(" ({})", other.metrics) };
    format!("; {} wants {}{metrics}", other.name, other.desired)
}

fn asleep(now: &RevisionSummary) -> String {
    match (now.waiting, now.terminating_pods.value()) {
        (0, 0) => "asleep: the next request starts a pod".to_owned(),
        (0, ending) => format!("going to sleep: {ending} {}", one_or_more(ending, "pod ends", "pods end")),
        (waiting, _) => format!("waking up for {waiting} {}", one_or_more(waiting, "request", "requests")),
    }
}

fn one_or_more(count: u32, one: &'static str, more: &'static str) -> &'static str {
    if count == 1 { one } else { more }
}

#[cfg(test)]
mod tests {
    use autoscaler::api_types::{LinkTallyView, OtherAutoscalerView};

    use super::*;
    use crate::get::columns::tests::summary;

    #[test]
    fn the_reason_is_about_now() {
        let said = |change: &dyn Fn(&mut RevisionSummary)| {
            let mut now = summary("default/service/hello");
            now.last_reason = "two minutes ago".to_owned();
            change(&mut now);
            reason(&now)
        };
        assert_eq!(said(&|_| {}), "8 ready, as needed");
        assert_eq!(said(&|now| now.ready_pods = PodCount::new(5)), "5 ready, 3 starting");
        let short_of_cores = said(&|now| {
            (now.wanted, now.ready_pods) = (PodCount::new(86), PodCount::new(4));
            now.awaiting_core_pods = PodCount::new(80);
        });
        assert_eq!(short_of_cores, "4 ready, 2 starting, 80 waiting for a core");
        assert_eq!(said(&|now| now.wanted = PodCount::new(7)), "7 wanted, 1 ends");
        assert_eq!(
            said(&|now| now.desired = Some(PodCount::new(9))),
            "8 ready, 9 needed: max-scale allows no more"
        );
        assert_eq!(said(&|now| now.desired = None), "8 ready, no load measured yet");
        let tally = |up, expected| Some(LinkTallyView { expected, up, down: Vec::new() });
        let links = |up, expected| said(&move |now| now.links = tally(up, expected));
        assert_eq!(links(8, 8), "8 ready, as needed");
        assert_eq!(links(3, 8), "3 of 8 pods are linked; 8 ready, as needed");
        let shadowed = |now: &mut RevisionSummary| {
            now.shadow = Some(ShadowView {
                compared_ms: 1000,
                compared: 4,
                differed: 0,
                differs_ms: None,
                last_difference: None,
            });
            now.other_autoscaler = Some(OtherAutoscalerView {
                name: "hello-hpa".to_owned(),
                desired: PodCount::new(3),
                current: PodCount::new(2),
                metrics: "cpu 120%/80%".to_owned(),
                why: String::new(),
            });
        };
        assert_eq!(
            said(&shadowed),
            "in shadow: as many as would be wanted; hello-hpa wants 3 (cpu 120%/80%)",
            "both are seen"
        );
        let paused = said(&|now| {
            shadowed(now);
            (now.left_alone, now.other_autoscaler) = (Some("paused".to_owned()), None);
        });
        assert_eq!(paused, "paused: as many as would be wanted");
        let unseen = said(&|now| {
            shadowed(now);
            now.ready_pods = PodCount::ZERO;
            now.why_not_ready = Some("waits for the platform to start a pod".to_owned());
        });
        assert!(unseen.starts_with("in shadow: as many as would be wanted"), "{unseen}");
        let failing = said(&|now| {
            shadowed(now);
            (now.ready_pods, now.not_ready_pods) = (PodCount::ZERO, PodCount::new(1));
            now.why_not_ready = Some("pod hello-1: it has failed".to_owned());
        });
        assert_eq!(failing, "pod hello-1: it has failed");
        let asleep = |waiting, ending| {
            let mut now = summary("default/service/hello");
            (now.wanted, now.ready_pods) = (PodCount::ZERO, PodCount::ZERO);
            (now.waiting, now.terminating_pods) = (waiting, PodCount::new(ending));
            reason(&now)
        };
        assert_eq!(asleep(0, 0), "asleep: the next request starts a pod");
        assert_eq!(asleep(0, 1), "going to sleep: 1 pod ends");
        assert_eq!(asleep(1, 0), "waking up for 1 request");
    }
}
