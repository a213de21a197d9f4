//! The loads that Knative's activators push, on their way from the server that takes connections to the task
//! of each activator.
//!
//! An activator is known by the name of its pod, which stands in each of its stats. One connection is one
//! activator's, so the end of the last connection on which a name came is the end of that activator's word.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use link::StatReport;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use vocabulary::{Load, ReplicaName, RevisionName, shown};

/// Words of one activator that wait for its task, as in Knative. When that is full, its connection is not
/// read.
const WORDS_MAX: usize = 1_000;
/// Names that one connection may bring: an activator has one, and another pod's name may come after it.
/// What comes under further names is dropped.
const REPORTERS_MAX: usize = 8;

/// What became known of one activator.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StatWord {
    /// The activator was connected already when its task began to listen.
    Connected,
    /// The loads of one frame, in the frame's order.
    Said(Vec<(RevisionName, Load)>),
    /// Its last connection has ended.
    Left,
}

/// The desk of one autoscaler, between the server that takes connections and the tasks of activators. Clones
/// are the same desk.
#[derive(Clone, Debug, Default)]
pub struct StatDesk(Arc<Mutex<BTreeMap<ReplicaName, DeskPlace>>>);

/// What is known of one activator.
#[derive(Debug, Default)]
struct DeskPlace {
    /// The connections on which its name came.
    connections: u32,
    listener: Option<mpsc::Sender<StatWord>>,
}

impl StatDesk {
    /// What an activator says from now on. An earlier listener of the same name hears no more.
    pub(crate) fn listen(&self, name: &ReplicaName) -> mpsc::Receiver<StatWord> {
        let (words, receiver) = mpsc::channel(WORDS_MAX);
        let mut places = self.0.lock();
        // Tasks of activators that are gone have ended since.
        places.retain(|_, place| place.is_used());
        let place = places.entry(name.clone()).or_default();
        if place.connections > 0 {
            // A channel that was made just now has room.
            let _ = words.try_send(StatWord::Connected);
        }
        place.listener = Some(words);
        receiver
    }

    /// Takes in a frame of a connection on which these activators came before; waits while a listener has
    /// much to do. The load of an activator that nobody listens to is dropped.
    pub(crate) async fn take(&self, frame: Vec<StatReport>, known: &mut BTreeSet<ReplicaName>) {
        let mut by_reporter: BTreeMap<ReplicaName, Vec<(RevisionName, Load)>> = BTreeMap::new();
        for report in frame {
            let loads = by_reporter.entry(ReplicaName::new(&report.reporter)).or_default();
            loads.push((report.revision, report.load));
        }
        for (name, loads) in by_reporter {
            if known.len() >= REPORTERS_MAX && !known.contains(&name) {
                tracing::debug!(reporter = shown(name.as_str()), "a connection brings too many names");
                continue;
            }
            let is_new = known.insert(name.clone());
            let listener = {
                let mut places = self.0.lock();
                let place = places.entry(name).or_default();
                place.connections += u32::from(is_new);
                place.listener.clone()
            };
            if let Some(listener) = listener {
                // The task of an activator that is gone does not listen any more.
                let _ = listener.send(StatWord::Said(loads)).await;
            }
        }
    }

    /// A connection on which these activators came has ended.
    pub(crate) fn left(&self, known: BTreeSet<ReplicaName>) {
        let mut places = self.0.lock();
        for name in known {
            let Some(place) = places.get_mut(&name) else { continue };
            place.connections = place.connections.saturating_sub(1);
            if place.connections == 0
                && let Some(listener) = &place.listener
            {
                // A listener with a full channel is not told: that nothing comes any more says the same.
                let _ = listener.try_send(StatWord::Left);
            }
        }
        places.retain(|_, place| place.is_used());
    }
}

impl DeskPlace {
    /// Whether the activator is connected, or a task listens to it.
    fn is_used(&self) -> bool {
        self.connections > 0 || self.listener.as_ref().is_some_and(|listener| !listener.is_closed())
    }
}

#[cfg(test)]
mod tests {
    use vocabulary::Concurrency;

    use super::*;

    fn report(reporter: &str, held: f64) -> StatReport {
        let revision = RevisionName::parse("default/revision/hello-00001").expect("a name");
        let concurrency = Concurrency::new(held).expect("a load");
        StatReport { revision, reporter: reporter.to_owned(), load: Load { concurrency, ..Load::default() } }
    }

    fn is_said(word: Option<StatWord>) -> bool {
        matches!(word, Some(StatWord::Said(loads)) if loads.len() == 1)
    }

    #[tokio::test]
    async fn each_activators_load_goes_to_its_own_task_and_the_end_of_its_last_connection_too() {
        let desk = StatDesk::default();
        let [mut one, mut two] = ["a", "b"].map(|name| desk.listen(&ReplicaName::new(name)));
        let (mut first, mut second) = (BTreeSet::new(), BTreeSet::new());
        desk.take(vec![report("a", 1.0), report("stranger", 1.0)], &mut first).await;
        desk.take(vec![report("b", 2.0)], &mut second).await;
        assert!(is_said(one.recv().await) && is_said(two.recv().await));
        let mut third = BTreeSet::new();
        desk.take(vec![report("a", 1.0)], &mut third).await;
        assert!(is_said(one.recv().await));
        desk.left(first);
        assert!(one.try_recv().is_err(), "it has another connection");
        desk.left(third);
        assert_eq!(one.recv().await, Some(StatWord::Left));
        assert!(two.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_later_listener_is_told_that_the_activator_is_connected() {
        let desk = StatDesk::default();
        desk.take(vec![report("a", 1.0)], &mut BTreeSet::new()).await;
        let mut words = desk.listen(&ReplicaName::new("a"));
        assert_eq!(words.recv().await, Some(StatWord::Connected));
        assert!(desk.listen(&ReplicaName::new("b")).try_recv().is_err());
    }

    #[tokio::test]
    async fn a_connection_brings_no_more_names_than_one_may() {
        let (desk, mut known) = (StatDesk::default(), BTreeSet::new());
        for number in 0..100 {
            desk.take(vec![report(&format!("stranger-{number}"), 1.0)], &mut known).await;
        }
        assert_eq!((known.len(), desk.0.lock().len()), (REPORTERS_MAX, REPORTERS_MAX));
        let mut words = desk.listen(&ReplicaName::new("stranger-0"));
        desk.take(vec![report("stranger-0", 1.0)], &mut known).await;
        assert_eq!(words.recv().await, Some(StatWord::Connected));
        assert!(is_said(words.recv().await), "names that came before are heard");
        desk.left(known);
        assert_eq!(words.recv().await, Some(StatWord::Left));
        assert_eq!(desk.0.lock().len(), 1, "the end of the connection is the end of its names");
    }
}
