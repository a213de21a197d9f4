//! What the owners hear: hellos, loads by the second, early counts, acknowledgements.

use std::collections::BTreeMap;

use vocabulary::{
    ActivatorHello, ActivatorWord, LinkVersion, RevisionLoad, RevisionName, Timestamp, Version,
};

use super::cell::RevisionCell;
use super::events::ActivatorCommand;
use super::outbox::{LinkOutbox, RevisionWords, SaidOnce};
use super::past_loads::SECONDS_MAX;
use super::{ActivatorLink, ActivatorRevisions};
use crate::claims::LinkNumber;
use crate::revision::{ActivatorRevision, RevisionNews};

impl<R: RevisionCell> ActivatorRevisions<R> {
    /// The next words for a link that can be written to, with the counts of this moment; nothing if there are
    /// none. The hello comes first, and is never older than a word that follows.
    pub fn next_words(&mut self, link: LinkNumber, now: Timestamp) -> Vec<ActivatorWord> {
        let is_leaving = self.is_leaving;
        let Some(outbox) = self.links.get_mut(&link).map(|link| &mut link.outbox) else { return Vec::new() };
        if outbox.hello == SaidOnce::NotYet {
            outbox.hello = SaidOnce::Said;
            outbox.next_second = self.open_second;
            return vec![ActivatorWord::Hello(self.hello())];
        }
        if is_leaving && outbox.draining == SaidOnce::NotYet {
            outbox.draining = SaidOnce::Said;
            return vec![ActivatorWord::Draining];
        }
        while let Some((revision, entry)) = self.outbox(link).and_then(LinkOutbox::pop) {
            let words = self.words_about(revision, &entry, now);
            if !words.is_empty() {
                return words;
            }
        }
        self.loads_for(link).into_iter().collect()
    }

    fn outbox(&mut self, link: LinkNumber) -> Option<&mut LinkOutbox> {
        self.links.get_mut(&link).map(|link| &mut link.outbox)
    }

    /// What is said about one revision; that it is empty comes last, because the owner goes by the last word.
    fn words_about(
        &mut self,
        revision: RevisionName,
        entry: &RevisionWords,
        now: Timestamp,
    ) -> Vec<ActivatorWord> {
        let known = self.known.get_mut(&revision).filter(|_| entry.is_present_due);
        let present = known.map(|known| {
            let (count, oldest_wait) = known.cell.with(|held| held.take_early_report(now));
            ActivatorWord::Present { revision: revision.clone(), count, oldest_wait }
        });
        let acknowledged = entry
            .acknowledged
            .map(|version| ActivatorWord::Acknowledged { revision: revision.clone(), version });
        let emptied = entry.is_emptied.then_some(ActivatorWord::Emptied { revision });
        present.into_iter().chain(acknowledged).chain(emptied).collect()
    }

    /// The loads of the next second that the link has not said. A second without loads is said too: it shows
    /// that the link lives.
    fn loads_for(&mut self, link: LinkNumber) -> Option<ActivatorWord> {
        let outbox = &mut self.links.get_mut(&link)?.outbox;
        let Some((second, loads)) = self.past.from(outbox.next_second) else {
            outbox.is_drained();
            return None;
        };
        outbox.next_second = second + 1;
        let receives = |load: &&RevisionLoad| self.claims.receives(link, &load.revision);
        let loads = loads.iter().filter(receives).cloned().collect();
        Some(ActivatorWord::Loads { second: *second, loads })
    }

    /// The hello names revisions of all buckets: the owner may be about to take over any of them.
    fn hello(&mut self) -> ActivatorHello {
        let mut present = Vec::with_capacity(self.active.len());
        for name in &self.active {
            if let Some(known) = self.known.get_mut(name) {
                present.push((name.clone(), known.cell.with(|revision| revision.present())));
            }
        }
        ActivatorHello {
            speaks: LinkVersion::CURRENT,
            activator: self.identity.name.clone(),
            boot: self.identity.boot,
            current_second: self.open_second,
            history: self.past.to_vec(),
            present,
            routings: self
                .known
                .iter()
                .map(|(name, known)| (name.clone(), known.assignment.routing))
                .collect(),
        }
    }

    /// Lets time pass for a revision, and tells the owners what the revision has to say.
    pub(super) fn look_at(&mut self, name: &RevisionName, now: Timestamp) {
        let mut news = RevisionNews::default();
        self.act(name, now, |revision| news = revision.advance_and_take_news(now));
        self.tell_news(name, news, now);
    }

    /// Tells the owners what a revision has to say.
    pub(super) fn take_news(&mut self, name: &RevisionName, now: Timestamp) {
        let Some(known) = self.known.get_mut(name) else { return };
        let news = known.cell.with(ActivatorRevision::take_news);
        self.tell_news(name, news, now);
    }

    fn tell_news(&mut self, name: &RevisionName, news: RevisionNews, now: Timestamp) {
        if news.is_active {
            self.active.insert(name.clone());
        }
        // Without a link for the revision nothing is reported: the next hello says what is held.
        if news.is_report_due
            && !self.notify(name, |entry| entry.is_present_due = true)
            && let Some(known) = self.known.get_mut(name)
        {
            known.cell.with(|revision| revision.take_early_report(now));
        }
        if news.is_emptied {
            self.report_or_forget(name, now);
        }
    }

    /// Acknowledges the version that is in force, if nothing is left to do for it.
    pub(super) fn acknowledge_if_done(&mut self, name: &RevisionName) {
        let known = self.known.get(name).filter(|known| known.upkeep.is_empty());
        if let Some(version) = known.map(|known| known.assignment.version) {
            self.acknowledge(name, version);
        }
    }

    /// Tells the present owner of the revision. If the owner's link is down the word is lost: the owner's
    /// next sync repeats what is not acknowledged.
    pub(super) fn acknowledge(&mut self, revision: &RevisionName, version: Version) {
        self.notify(revision, |entry| entry.acknowledged = entry.acknowledged.max(Some(version)));
    }

    /// Adds words for every link that receives words of the revision. Returns whether there is such a link.
    pub(super) fn notify(&mut self, revision: &RevisionName, add: impl Fn(&mut RevisionWords)) -> bool {
        let mut is_received = false;
        for link in self.claims.receivers(revision) {
            let Some(ActivatorLink { outbox, .. }) = self.links.get_mut(&link) else { continue };
            add(outbox.entry(revision));
            if outbox.call() {
                self.commands.push_back(ActivatorCommand::Write { link });
            }
            is_received = true;
        }
        is_received
    }

    /// There are words for a link.
    pub(super) fn call(&mut self, link: LinkNumber) {
        if self.outbox(link).is_some_and(LinkOutbox::call) {
            self.commands.push_back(ActivatorCommand::Write { link });
        }
    }

    /// There are words for every link.
    pub(super) fn call_all(&mut self) {
        for (&link, ActivatorLink { outbox, .. }) in &mut self.links {
            if outbox.call() {
                self.commands.push_back(ActivatorCommand::Write { link });
            }
        }
    }

    /// Closes the seconds that have ended, and lets time pass for the revisions that are due.
    pub(super) fn time_passed(&mut self, now: Timestamp) {
        let is_due = |cell: &R| cell.next_deadline().is_some_and(|at| at <= now);
        let due = self.known.iter().filter(|(_, known)| is_due(&known.cell));
        for name in due.map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.act(&name, now, |revision| revision.advance(now));
        }
        if now >= self.seconds.beginning_of(self.open_second + 1) {
            self.close_seconds(now);
        }
    }

    fn close_seconds(&mut self, now: Timestamp) {
        let ended = self.seconds.ended(self.open_second, now);
        let began = self.seconds.beginning_of(self.open_second);
        let close = |cell: &mut R| cell.close_seconds(ended.count(), began, now);
        let mut loads = BTreeMap::new();
        // The last second of what is known no more; a revision that is known again since speaks for both.
        for (revision, mut cell) in std::mem::take(&mut self.departed) {
            loads.extend(close(&mut cell).map(|closed| (revision, closed)));
        }
        self.active.retain(|revision| {
            let closed = self.known.get_mut(revision).and_then(|known| close(&mut known.cell));
            let is_active = closed.is_some();
            loads.extend(closed.map(|closed| (revision.clone(), closed)));
            is_active
        });
        let loads = loads.into_iter().map(|(revision, closed)| RevisionLoad {
            revision,
            load: closed.load,
            oldest_wait: closed.oldest_wait,
            callers: Vec::new(),
        });
        let loads: Vec<RevisionLoad> = loads.collect();
        for second in ended.latest(SECONDS_MAX) {
            self.past.push((second, loads.clone()));
        }
        self.open_second = ended.next();
        self.call_all();
    }
}
