//! An activator of Knative's, which has no link: what it pushes is told as the words of one. (Contract §7.3.)
//!
//! It says once a second what it held of each revision with traffic, and at once that a first request has
//! come. A report goes in as a present count, and as the value of the second in which it came, by our clock.
//! Reports are a second apart and may fall on either side of a boundary: so a revision that is not named in a
//! second keeps the value of the second before, once.

use std::collections::BTreeMap;
use std::time::Duration;

use orchestration::{ControlEvent, LinkNews};
use tokio::sync::mpsc;
use vocabulary::{
    ActivatorHello, ActivatorWord, Load, PodCount, PresentCount, ReplicaName, RevisionLoad, RevisionName,
};

use super::boots::new_boot;
use super::peer::LinkPeer;
use crate::stat_desk::{StatDesk, StatWord};

const SECOND: Duration = Duration::from_secs(1);

/// Tells what the activator says, until the task is ended.
pub(super) async fn keep(peer: LinkPeer, name: ReplicaName, desk: StatDesk) {
    let mut words = desk.listen(&name);
    // The desk keeps one listener for each name, and a later one takes its place: then nothing comes any
    // more.
    while let Some(word) = words.recv().await {
        match word {
            StatWord::Connected => converse(&peer, &name, Vec::new(), &mut words).await,
            StatWord::Said(loads) => converse(&peer, &name, loads, &mut words).await,
            StatWord::Left => {}
        }
    }
    std::future::pending::<()>().await;
}

/// Tells a hello, then what is said, until the activator has no connection any more.
async fn converse(
    peer: &LinkPeer,
    name: &ReplicaName,
    first: Vec<(RevisionName, Load)>,
    words: &mut mpsc::Receiver<StatWord>,
) {
    let link = peer.target.id;
    let began = peer.clock.now();
    say(peer, ActivatorWord::Hello(hello(name))).await;
    let (mut second, mut seconds) = (0_u32, PushedSeconds::default());
    take(peer, &mut seconds, first).await;
    loop {
        // Cancel-safe: a word stays in its channel, and the end of the second is worked out anew.
        tokio::select! {
            word = words.recv() => match word {
                Some(StatWord::Said(loads)) => take(peer, &mut seconds, loads).await,
                Some(StatWord::Connected) => {}
                Some(StatWord::Left) | None => break,
            },
            () = peer.clock.sleep_until(began + SECOND * (second + 1)) => {
                let loads = seconds.end();
                say(peer, ActivatorWord::Loads { second: u64::from(second), loads }).await;
                second += 1;
            }
        }
    }
    peer.say(ControlEvent::LinkChanged { link, news: LinkNews::Lost }).await;
}

async fn take(peer: &LinkPeer, seconds: &mut PushedSeconds, loads: Vec<(RevisionName, Load)>) {
    for (revision, load) in loads {
        let count = PresentCount { in_flight: held(load), waiting: 0 };
        seconds.note(revision.clone(), load);
        say(peer, ActivatorWord::Present { revision, count, oldest_wait: Duration::ZERO }).await;
    }
}

async fn say(peer: &LinkPeer, word: ActivatorWord) {
    peer.say(ControlEvent::ActivatorSpoke { link: peer.target.id, word }).await;
}

/// Each connection is a life of its own: its seconds begin anew.
fn hello(name: &ReplicaName) -> ActivatorHello {
    ActivatorHello {
        speaks: vocabulary::LinkVersion::CURRENT,
        activator: name.clone(),
        boot: new_boot(),
        current_second: 0,
        history: Vec::new(),
        present: Vec::new(),
        routings: Vec::new(),
    }
}

/// The requests of a mean, as a count: a part of a request was one for a part of the second.
fn held(load: Load) -> u32 {
    PodCount::ceil_from(load.concurrency.value()).value()
}

/// What was said of the running second and of the one before.
#[derive(Debug, Default)]
struct PushedSeconds {
    running: BTreeMap<RevisionName, Load>,
    former: BTreeMap<RevisionName, Load>,
}

impl PushedSeconds {
    /// The latest report of a second is its value: the first request is told at once, and then the mean.
    fn note(&mut self, revision: RevisionName, load: Load) {
        self.running.insert(revision, load);
    }

    /// The second ends: what was said of it, and what the one before said of revisions that it did not name.
    fn end(&mut self) -> Vec<RevisionLoad> {
        let said = std::mem::take(&mut self.running);
        let mut loads = std::mem::replace(&mut self.former, said.clone());
        loads.extend(said);
        let load = |(revision, load)| RevisionLoad {
            revision,
            load,
            oldest_wait: Duration::ZERO,
            callers: Vec::new(),
        };
        loads.into_iter().map(load).collect()
    }
}

#[cfg(test)]
mod tests {
    use vocabulary::Concurrency;

    use super::*;

    fn load(held: f64) -> Load {
        Load { concurrency: Concurrency::new(held).expect("a load"), ..Load::default() }
    }

    fn revision(name: &str) -> RevisionName {
        RevisionName::new("default", "revision", name).expect("a name")
    }

    #[test]
    fn a_report_that_is_a_little_late_leaves_no_hole_and_silence_ends_after_a_second() {
        let mut seconds = PushedSeconds::default();
        let ends = |seconds: &mut PushedSeconds| {
            let loads = seconds.end();
            loads.iter().map(|of| of.load.concurrency.value()).collect::<Vec<_>>()
        };
        seconds.note(revision("hello"), load(3.0));
        assert_eq!(ends(&mut seconds), [3.0]);
        assert_eq!(ends(&mut seconds), [3.0], "the report of this second may come in the next one");
        assert_eq!(ends(&mut seconds), Vec::<f64>::new(), "it has nothing more to say of it");
    }

    #[test]
    fn the_mean_of_a_second_takes_the_place_of_its_first_request() {
        let mut seconds = PushedSeconds::default();
        seconds.note(revision("hello"), load(1.0));
        seconds.note(revision("hello"), load(7.5));
        seconds.note(revision("other"), load(2.0));
        let loads = seconds.end();
        let values: Vec<f64> = loads.iter().map(|of| of.load.concurrency.value()).collect();
        assert_eq!(values, [7.5, 2.0]);
        assert_eq!((held(load(7.5)), held(load(0.0))), (8, 0));
    }
}
