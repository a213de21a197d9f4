use super::*;

const REVISION: RevisionId = RevisionId(3);
const ONE: ReplicaId = ReplicaId(0);
const TWO: ReplicaId = ReplicaId(1);

fn version(counter: u64) -> Version {
    Version { epoch: vocabulary::Epoch(1), counter }
}

fn appear(known: &mut Activators, name: &str) -> ReplicaId {
    let name = ReplicaName::new(name);
    let id = known.intern(&name);
    let link = std::net::SocketAddr::from(([127, 0, 0, 1], 1)).into();
    known.put(id, ActivatorFacts { name, link, life: ActivatorLife::Ready }, LinkId(u64::from(id.0)));
    id
}

/// Two activators that know the revision and act upon this version.
fn both_at(counter: u64) -> Activators {
    let mut known = Activators::default();
    for name in ["a", "b"] {
        let id = appear(&mut known, name);
        known.started(id, BootId(7), &[REVISION].into());
        known.acknowledged(id, REVISION, version(counter));
    }
    known
}

#[test]
fn every_possible_sender_must_have_the_version_or_a_newer_one() {
    let mut known = both_at(5);
    assert!(known.all_acknowledged(REVISION, version(5)) && known.all_acknowledged(REVISION, version(4)));
    assert!(!known.all_acknowledged(REVISION, version(6)));
    known.acknowledged(ONE, REVISION, version(6));
    assert!(!known.all_acknowledged(REVISION, version(6)), "one of two is not all");
    known.retain(&[ReplicaName::new("a")]);
    assert!(known.all_acknowledged(REVISION, version(6)), "one that is gone picks nothing any more");
    let third = appear(&mut known, "c");
    assert!(!known.all_acknowledged(REVISION, version(6)), "one that was never heard might");
    known.started(third, BootId(1), &BTreeSet::new());
    assert!(known.all_acknowledged(REVISION, version(6)), "one that knows nothing of it cannot");
}

#[test]
fn a_late_acknowledgement_of_an_old_version_takes_nothing_back() {
    let mut known = both_at(5);
    known.acknowledged(ONE, REVISION, version(2));
    assert!(known.all_acknowledged(REVISION, version(5)));
}

#[test]
fn a_new_link_of_the_same_boot_changes_nothing_and_a_new_boot_changes_all() {
    let mut known = both_at(5);
    known.started(TWO, BootId(7), &[REVISION].into());
    assert!(known.all_acknowledged(REVISION, version(5)));
    known.started(TWO, BootId(8), &[REVISION].into());
    assert!(!known.all_acknowledged(REVISION, version(1)));
}

#[test]
fn one_that_forgets_counts_until_it_says_so() {
    let mut known = both_at(5);
    let forgetting = HoldingState::Forgetting { version: version(8) };
    known.get_mut(TWO).expect("it is there").holdings.get_mut(&REVISION).expect("known").standing =
        forgetting;
    known.acknowledged(ONE, REVISION, version(7));
    assert!(!known.all_acknowledged(REVISION, version(7)));
    known.acknowledged(TWO, REVISION, version(8));
    assert!(known.all_acknowledged(REVISION, version(7)));
}

#[test]
fn activators_on_their_way_out_are_chosen_only_if_no_other_is_left() {
    let mut known = both_at(1);
    let names = |known: &Activators| known.candidates().into_iter().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(names(&known), ["a", "b"]);
    known.get_mut(ONE).expect("it is there").is_draining = true;
    assert_eq!(names(&known), ["b"]);
    known.get_mut(TWO).expect("it is there").reach = ActivatorReach::Refused;
    assert_eq!(names(&known), ["b"], "it may come back, the other one will not");
    known.get_mut(TWO).expect("it is there").facts.life = ActivatorLife::Terminating;
    assert_eq!(names(&known), ["a", "b"]);
}
