//! Hides the names in what is about to be written.
//!
//! A field that is added to a message and has a name belongs here, too. Texts that people or programs wrote
//! for people (why a pod is in trouble) are hashed whole: they name things. Texts of settings stay, because a
//! replay reads them, but for the address of a server.

use std::collections::{BTreeMap, BTreeSet};

use link::Message;
use orchestration::ControlCommand;
use vocabulary::{ActivatorWord, AdoptedConnections, PeerList, PodWord, RevisionLoad};

use crate::frames::{word_in, word_out};
use crate::hidden_names::HiddenNames;
use crate::outcome::errand_hash;
use crate::wire::facts_proto::{
    EntranceBody, FactBody, FactMessage, LinkAddressMessage, OrderEndBody, PodFactsMessage,
    RevisionFactsMessage, SubjectBody,
};
use crate::wire::proto::{
    FrameBody, GivenOrderMessage, KeyframeMessage, LinkChangeBody, LinkPeerBody, OpenedLinkMessage,
    OutcomeMessage,
};

/// The key of the ConfigMap whose text is an address.
const ADDRESS_KEY: &str = "prometheus-url";

/// Hides names frame by frame.
#[derive(Clone, Debug)]
pub(crate) struct FrameHiding {
    names: HiddenNames,
    /// The hash of each errand of late, and that of the same errand with hidden names.
    errands: BTreeMap<u64, u64>,
}

impl FrameHiding {
    pub(crate) fn new(names: HiddenNames) -> Self {
        Self { names, errands: BTreeMap::new() }
    }

    /// Commands came out whose orders may stand in the frames behind them.
    pub(crate) fn note(&mut self, commands: &[ControlCommand]) {
        for command in commands {
            if let ControlCommand::Order(order) = command {
                let errand = order.what.errand();
                let hidden = errand_hash(&self.names.errand(&errand));
                self.errands.insert(errand_hash(&errand), hidden);
            }
        }
    }

    pub(crate) fn hide(&mut self, body: &mut FrameBody) {
        match body {
            FrameBody::PodSpoke(spoken) => self.hide_word(&mut spoken.word, Self::hide_pod_word),
            FrameBody::ActivatorSpoke(spoken) => self.hide_word(&mut spoken.word, Self::hide_activator_word),
            FrameBody::LinkChanged(change) => match &mut change.news {
                Some(LinkChangeBody::Blocked(reason)) => self.hide_text(reason),
                Some(
                    LinkChangeBody::Lost(_)
                    | LinkChangeBody::Refused(_)
                    | LinkChangeBody::Unreachable(_)
                    | LinkChangeBody::Accepting(_),
                )
                | None => {}
            },
            FrameBody::Fact(fact) => self.hide_fact(fact),
            FrameBody::MetricsAnswered(answers) => self.hide_revision(&mut answers.revision),
            FrameBody::HistoryRestored(history) | FrameBody::DemandImported(history) => {
                self.hide_revision(&mut history.revision);
            }
            FrameBody::Header(header) => self.hide_text(&mut header.owner),
            FrameBody::Keyframe(keyframe) => self.hide_keyframe(keyframe),
            // Reports are hidden before they are packed, and no state comes here.
            FrameBody::WallClock(_)
            | FrameBody::Advanced(_)
            | FrameBody::ZoneRead(_)
            | FrameBody::Reports(_)
            | FrameBody::ExactState(_) => {}
        }
    }

    pub(crate) fn hide_loads(&mut self, loads: &mut [RevisionLoad]) {
        for load in loads {
            load.revision = self.names.revision_name(&load.revision);
        }
    }

    pub(crate) fn hide_outcome(&mut self, outcome: &mut OutcomeMessage) {
        // It is of the names too, under no key.
        outcome.commands = 0;
        for opened in &mut outcome.opened {
            self.hide_peer(opened);
        }
        for order in &mut outcome.orders {
            self.hide_order(order);
        }
        for count in &mut outcome.counts {
            self.hide_revision(&mut count.revision);
        }
    }

    fn hide_keyframe(&mut self, keyframe: &mut KeyframeMessage) {
        for fact in &mut keyframe.facts {
            self.hide_fact(fact);
        }
        for state in &mut keyframe.links {
            let hide = match state.link.as_ref().and_then(|link| link.peer.as_ref()) {
                Some(LinkPeerBody::Pod(_)) | None => Self::hide_any_pod_word,
                Some(LinkPeerBody::Activator(_)) => Self::hide_any_activator_word,
            };
            for word in &mut state.words {
                hide(self, word);
            }
            state.link.iter_mut().for_each(|link| self.hide_peer(link));
        }
        for history in &mut keyframe.histories {
            self.hide_revision(&mut history.revision);
        }
        let under_way: BTreeSet<u64> = keyframe.orders.iter().map(|order| order.errand).collect();
        // An order that has ended is never named again.
        self.errands.retain(|errand, _| under_way.contains(errand));
        for order in &mut keyframe.orders {
            self.hide_order(order);
        }
    }

    fn hide_any_pod_word(&mut self, word: &mut Vec<u8>) {
        self.hide_word(word, Self::hide_pod_word);
    }

    fn hide_any_activator_word(&mut self, word: &mut Vec<u8>) {
        self.hide_word(word, Self::hide_activator_word);
    }

    /// A word that does not decode is none of this program's, and is left out.
    fn hide_word<Word: Message>(&mut self, bytes: &mut Vec<u8>, hide: fn(&mut Self, &mut Word)) {
        match word_in::<Word>(bytes) {
            Ok(mut word) => {
                hide(self, &mut word);
                *bytes = word_out(&word);
            }
            Err(_) => bytes.clear(),
        }
    }

    fn hide_pod_word(&mut self, word: &mut PodWord) {
        match word {
            PodWord::Hello(hello) => {
                hello.pod = self.names.pod(&hello.pod);
                self.hide_text(&mut hello.detail);
            }
            PodWord::State { detail, .. } => self.hide_text(detail),
            PodWord::Adopted(AdoptedConnections::Open(tally)) => {
                tally.peers = PeerList::of(tally.peers.iter().map(|peer| self.names.ip(peer)));
            }
            PodWord::Load { .. }
            | PodWord::Present(_)
            | PodWord::SettingsAcknowledged(_)
            | PodWord::Adopted(AdoptedConnections::Unreadable { .. }) => {}
        }
    }

    fn hide_activator_word(&mut self, word: &mut ActivatorWord) {
        match word {
            ActivatorWord::Hello(hello) => {
                hello.activator = self.names.replica(&hello.activator);
                hello.history.iter_mut().for_each(|(_, loads)| self.hide_loads(loads));
                for (revision, _) in &mut hello.present {
                    *revision = self.names.revision_name(revision);
                }
                for (revision, _) in &mut hello.routings {
                    *revision = self.names.revision_name(revision);
                }
            }
            ActivatorWord::Loads { loads, .. } => self.hide_loads(loads),
            ActivatorWord::Present { revision, .. }
            | ActivatorWord::Acknowledged { revision, .. }
            | ActivatorWord::Emptied { revision } => *revision = self.names.revision_name(revision),
            ActivatorWord::Draining => {}
        }
    }

    fn hide_fact(&mut self, fact: &mut FactMessage) {
        let Some(body) = &mut fact.body else { return };
        match body {
            FactBody::Config(config) => {
                if let Some(address) = config.texts.get_mut(ADDRESS_KEY).filter(|text| !text.is_empty()) {
                    *address = format!("http://{}.invalid", self.names.name(address));
                }
            }
            FactBody::Problems(problems) => {
                match &mut problems.about {
                    Some(SubjectBody::Revision(name)) => self.hide_revision(name),
                    Some(SubjectBody::Pod(name) | SubjectBody::Activator(name)) => self.hide_text(name),
                    Some(SubjectBody::Configuration(_)) | None => {}
                }
                problems.problems.iter_mut().for_each(|problem| self.hide_text(problem));
            }
            FactBody::Ownership(ownership) => {
                self.names.set_buckets(u16::try_from(ownership.buckets).unwrap_or(u16::MAX));
            }
            FactBody::Revision(facts) => self.hide_revision_facts(facts),
            FactBody::RevisionRemoved(name) | FactBody::RevisionGivenBack(name) => self.hide_revision(name),
            FactBody::Pods(pods) => {
                self.hide_revision(&mut pods.revision);
                pods.pods.iter_mut().for_each(|pod| self.hide_pod(pod));
            }
            FactBody::PodFailed(end) | FactBody::PodKilled(end) => {
                self.hide_revision(&mut end.revision);
                self.hide_text(&mut end.pod);
                self.hide_text(&mut end.reason);
            }
            FactBody::Activators(activators) => {
                for activator in &mut activators.activators {
                    self.hide_text(&mut activator.name);
                    activator.link.iter_mut().for_each(|link| self.hide_address(link));
                }
            }
            FactBody::RouteFound(route) => {
                self.hide_revision(&mut route.revision);
                route.activators.iter_mut().for_each(|name| self.hide_text(name));
            }
            FactBody::OrderEnded(end) => self.hide_order_end(&mut end.outcome),
            FactBody::Synced(_) => {}
        }
    }

    fn hide_order_end(&mut self, outcome: &mut Option<OrderEndBody>) {
        match outcome {
            Some(
                OrderEndBody::Refused(text) | OrderEndBody::Forbidden(text) | OrderEndBody::Retrying(text),
            ) => {
                self.hide_text(text);
            }
            Some(
                OrderEndBody::Done(_)
                | OrderEndBody::Superseded(_)
                | OrderEndBody::Conflict(_)
                | OrderEndBody::Gone(_)
                | OrderEndBody::NotOwner(_),
            )
            | None => {}
        }
    }

    fn hide_revision_facts(&mut self, facts: &mut RevisionFactsMessage) {
        self.hide_revision(&mut facts.name);
        self.hide_text(&mut facts.template);
        facts.hold.iter_mut().for_each(|hold| self.hide_text(hold));
        for entrance in &mut facts.entrances {
            match &mut entrance.entrance {
                Some(EntranceBody::Host(host)) => self.hide_text(host),
                Some(EntranceBody::Port(_)) | None => {}
            }
        }
    }

    fn hide_pod(&mut self, pod: &mut PodFactsMessage) {
        self.hide_text(&mut pod.name);
        if !pod.requests.is_empty() {
            pod.requests = self.names.address(&pod.requests);
        }
        pod.link.iter_mut().for_each(|link| self.hide_address(link));
        let texts = [&mut pod.trouble, &mut pod.trouble_without_output, &mut pod.hold];
        texts.into_iter().flatten().for_each(|text| self.hide_text(text));
    }

    fn hide_peer(&mut self, opened: &mut OpenedLinkMessage) {
        match &mut opened.peer {
            Some(LinkPeerBody::Pod(name) | LinkPeerBody::Activator(name)) => self.hide_text(name),
            None => {}
        }
    }

    fn hide_order(&mut self, order: &mut GivenOrderMessage) {
        if let Some(hidden) = self.errands.get(&order.errand) {
            order.errand = *hidden;
        }
    }

    fn hide_address(&mut self, link: &mut LinkAddressMessage) {
        link.socket = self.names.address(&link.socket);
    }

    fn hide_revision(&mut self, name: &mut String) {
        *name = self.names.revision(name);
    }

    /// An empty text says that there is none.
    fn hide_text(&self, text: &mut String) {
        if !text.is_empty() {
            *text = self.names.name(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::time::Duration;

    use vocabulary::ConnectionTally;

    use super::*;
    use crate::hidden_names::NameKey;

    #[test]
    fn addresses_of_clients_are_hidden() {
        let peers = PeerList::of([IpAddr::from([203, 0, 113, 7])]);
        let tally = ConnectionTally { count: 1, age: Duration::ZERO, peers };
        let mut word = PodWord::Adopted(AdoptedConnections::Open(tally));
        FrameHiding::new(HiddenNames::new(NameKey::default())).hide_pod_word(&mut word);
        let shown = format!("{word:?}");
        assert!(!shown.contains("203.0.113.7") && shown.contains("10."), "{shown}");
    }
}
