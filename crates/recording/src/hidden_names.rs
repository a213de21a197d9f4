//! Names and addresses in a record that may be given away: each is replaced by a hash of it.
//!
//! Under one key equal names have equal hashes, so the record still says which pod is of which Service. The
//! key is drawn at the start of the program and never written: no guess of a name can be tried. A Service
//! keeps the bucket that it is in, for its owner follows from that. Their order is another one, and with it
//! the order of commands: so a record with hidden names is compared by its counts, and not by hashes.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use orchestration::{Entrance, Errand, Subject};
use vocabulary::{Ownership, PodName, ReplicaName, RevisionName};

use crate::secrets::SecretHasher;

/// Whether a record has the names of Services, pods, hosts and replicas, and addresses.
#[derive(Clone, Debug, Default)]
pub enum RecordedNames {
    /// As people and platforms gave them.
    #[default]
    Plain,
    /// As hashes under this key.
    Hidden(NameKey),
}

/// The key under which names are hashed: one for all records of a run. Every one is another.
#[derive(Clone, Debug, Default)]
pub struct NameKey(SecretHasher);

/// Replaces names, and remembers what it has to.
#[derive(Clone, Debug)]
pub(crate) struct HiddenNames {
    key: NameKey,
    /// How many buckets Services are in.
    buckets: u16,
    /// What stands for the name of each Service.
    revisions: BTreeMap<String, RevisionName>,
}

impl HiddenNames {
    pub(crate) fn new(key: NameKey) -> Self {
        Self { key, buckets: 1, revisions: BTreeMap::new() }
    }

    /// Ownership is told before the revisions that it is about.
    pub(crate) fn set_buckets(&mut self, buckets: u16) {
        self.buckets = buckets;
    }

    /// What stands for a name or a text.
    pub(crate) fn name(&self, name: &str) -> String {
        format!("{:016x}", self.key.0.hash(name.as_bytes()))
    }

    /// What stands for the name of a revision; what is no such name is hashed as a text.
    pub(crate) fn revision(&mut self, name: &str) -> String {
        match RevisionName::parse(name) {
            Ok(name) => self.revision_name(&name).as_str().to_owned(),
            Err(_) => self.name(name),
        }
    }

    pub(crate) fn revision_name(&mut self, name: &RevisionName) -> RevisionName {
        if let Some(hidden) = self.revisions.get(name.as_str()) {
            return hidden.clone();
        }
        let hidden = self.in_its_bucket(name);
        self.revisions.insert(name.as_str().to_owned(), hidden.clone());
        hidden
    }

    /// Of some names that stand for a revision, the first one in the same bucket.
    fn in_its_bucket(&self, name: &RevisionName) -> RevisionName {
        let ownership = Ownership { epochs: BTreeMap::new(), buckets: self.buckets };
        let candidates = (0_u32..).map(|number| {
            let hidden = self.name(&format!("{name} {number}"));
            RevisionName::new(&self.name(name.namespace()), name.kind(), &hidden)
        });
        let mut good = candidates.flatten();
        let bucket = ownership.bucket_of(name);
        good.find(|hidden| ownership.bucket_of(hidden) == bucket)
            .expect("a name of three parts is found in each bucket, for numbers have no end")
    }

    pub(crate) fn pod(&self, name: &PodName) -> PodName {
        PodName::new(&self.name(name.as_str()))
    }

    pub(crate) fn replica(&self, name: &ReplicaName) -> ReplicaName {
        ReplicaName::new(&self.name(name.as_str()))
    }

    /// An address of a private network that stands for another one; ports stay.
    pub(crate) fn address(&self, address: &str) -> String {
        let Ok(address) = address.parse::<SocketAddr>() else { return self.name(address) };
        SocketAddr::new(self.ip(address.ip()), address.port()).to_string()
    }

    /// An IP address of a private network that stands for another one.
    pub(crate) fn ip(&self, address: IpAddr) -> IpAddr {
        let [.., high, middle, low] = self.key.0.hash(address.to_string().as_bytes()).to_be_bytes();
        Ipv4Addr::new(10, high, middle, low).into()
    }

    /// The errand of an order with the names that stand for its own.
    pub(crate) fn errand(&mut self, errand: &Errand) -> Errand {
        match errand {
            Errand::State(pod) => Errand::State(self.pod(pod)),
            Errand::Reach(pod) => Errand::Reach(self.pod(pod)),
            Errand::Route(revision) => Errand::Route(self.revision_name(revision)),
            Errand::Scale(revision) => Errand::Scale(self.revision_name(revision)),
            Errand::Release(pod) => Errand::Release(self.pod(pod)),
            Errand::Drained(pod) => Errand::Drained(self.pod(pod)),
            Errand::Entrance(revision, entrance) => {
                let entrance = match entrance {
                    Entrance::Host(host) => Entrance::Host(self.name(host)),
                    Entrance::Port(port) => Entrance::Port(*port),
                };
                Errand::Entrance(self.revision_name(revision), entrance)
            }
            Errand::Tell(subject) => Errand::Tell(self.subject(subject)),
        }
    }

    fn subject(&mut self, subject: &Subject) -> Subject {
        match subject {
            Subject::Configuration => Subject::Configuration,
            Subject::Revision(name) => Subject::Revision(self.revision_name(name)),
            Subject::Pod(name) => Subject::Pod(self.pod(name)),
            Subject::Activator(name) => Subject::Activator(self.replica(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_stay_equal_under_one_key_and_keep_their_bucket() {
        let key = NameKey::default();
        let (mut one, mut two) = (HiddenNames::new(key.clone()), HiddenNames::new(key));
        one.set_buckets(10);
        two.set_buckets(10);
        let ownership = Ownership { epochs: BTreeMap::new(), buckets: 10 };
        for number in 0..50 {
            let name = RevisionName::new("shop", "deployment", &format!("cart-{number}")).expect("a name");
            let hidden = one.revision_name(&name);
            assert_eq!(hidden, two.revision_name(&name));
            assert_eq!(ownership.bucket_of(&hidden), ownership.bucket_of(&name));
            assert!(!hidden.as_str().contains("shop") && !hidden.as_str().contains("cart"), "{hidden}");
            assert_eq!(hidden.kind(), "deployment");
        }
        let other = HiddenNames::new(NameKey::default());
        assert_ne!(one.name("cart"), other.name("cart"));
    }

    #[test]
    fn an_address_stays_an_address_with_its_port() {
        let names = HiddenNames::new(NameKey::default());
        for address in ["192.168.7.9:8012", "[fd00::7]:8012"] {
            let hidden = names.address(address);
            assert!(hidden.parse::<SocketAddr>().is_ok_and(|hidden| hidden.port() == 8012), "{hidden}");
            assert!(hidden.starts_with("10.") && names.address(address) == hidden, "{hidden}");
        }
    }
}
