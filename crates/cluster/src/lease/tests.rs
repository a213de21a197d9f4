use super::*;

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_duration(Duration::from_secs(1000 + seconds))
}

/// An API server with one object, which refuses a write over another version than it has.
#[derive(Default)]
struct Server {
    lease: Option<LeaseRecord>,
    versions: u32,
}

impl Server {
    fn write(&mut self, write: &LeaseWrite) -> Result<String, ()> {
        let present = self.lease.as_ref().map(|lease| lease.resource_version.clone());
        if present != write.over {
            return Err(());
        }
        self.versions += 1;
        let resource_version = self.versions.to_string();
        let (holder, transitions) = (write.holder.clone(), write.transitions);
        self.lease = Some(LeaseRecord {
            holder,
            transitions,
            lasts: LEASE,
            resource_version: resource_version.clone(),
            notes: write.notes.clone(),
        });
        Ok(resource_version)
    }
}

fn keeper(name: &str) -> LeaseKeeper {
    LeaseKeeper::new(ReplicaName::new(name))
}

/// Lets a keeper look, write if it wants to, and hear how that went.
fn turn(keeper: &mut LeaseKeeper, server: &mut Server, now: Timestamp) {
    keeper.observe(server.lease.clone(), now);
    if let Some(write) = keeper.next_write(now, VacancyUse::TakeIt, None) {
        match server.write(&write) {
            Ok(version) => keeper.written(version, now),
            Err(()) => keeper.failed(now),
        }
    }
}

fn epoch(keeper: &LeaseKeeper, now: Timestamp) -> Option<u64> {
    keeper.right(now).map(|right| right.epoch.0)
}

#[test]
fn the_first_replica_makes_the_lease_and_the_second_waits_until_it_is_not_renewed() {
    let (mut server, mut one, mut two) = (Server::default(), keeper("one"), keeper("two"));
    turn(&mut one, &mut server, at(0));
    turn(&mut two, &mut server, at(0));
    assert_eq!((epoch(&one, at(0)), epoch(&two, at(0))), (Some(1), None));
    one.renew();
    turn(&mut one, &mut server, at(5));
    turn(&mut two, &mut server, at(6));
    turn(&mut two, &mut server, at(20));
    assert_eq!((epoch(&one, at(19)), epoch(&one, at(20)), epoch(&two, at(20))), (Some(1), None, None));
    turn(&mut two, &mut server, at(21));
    assert_eq!(epoch(&two, at(21)), Some(2));
}

#[test]
fn a_released_lease_is_taken_at_once() {
    let (mut server, mut one, mut two) = (Server::default(), keeper("one"), keeper("two"));
    turn(&mut one, &mut server, at(0));
    turn(&mut two, &mut server, at(0));
    one.leave();
    turn(&mut one, &mut server, at(1));
    assert!(one.has_left());
    turn(&mut two, &mut server, at(1));
    assert_eq!((epoch(&one, at(1)), epoch(&two, at(1))), (None, Some(2)));
    turn(&mut one, &mut server, at(30));
    assert_eq!(epoch(&one, at(30)), None);
}

#[test]
fn a_replica_that_was_frozen_has_no_right_when_it_wakes() {
    let (mut server, mut one, mut two) = (Server::default(), keeper("one"), keeper("two"));
    turn(&mut one, &mut server, at(0));
    turn(&mut two, &mut server, at(0));
    turn(&mut two, &mut server, at(15));
    assert_eq!((epoch(&one, at(15)), epoch(&two, at(15))), (None, Some(2)));
    one.renew();
    turn(&mut one, &mut server, at(16));
    assert_eq!(epoch(&one, at(16)), None);
    assert_eq!(server.lease.as_ref().and_then(|lease| lease.holder.clone()).as_deref(), Some("two"));
}

#[test]
fn a_right_lasts_from_before_the_renewal_was_sent() {
    let (mut server, mut one) = (Server::default(), keeper("one"));
    one.observe(None, at(0));
    let write = one.next_write(at(0), VacancyUse::TakeIt, None).expect("it is free");
    let version = server.write(&write).expect("no other client writes");
    one.written(version, at(4));
    assert_eq!(one.right(at(14)).map(|right| right.until), Some(at(15)));
}

#[test]
fn a_write_that_failed_is_tried_again_and_not_at_once() {
    let mut one = keeper("one");
    assert_eq!(one.next_write(at(0), VacancyUse::TakeIt, None), None, "nothing is known yet");
    one.observe(None, at(0));
    one.next_write(at(0), VacancyUse::TakeIt, None).expect("it is free");
    assert_eq!(one.next_write(at(0), VacancyUse::TakeIt, None), None, "one is under way");
    one.failed(at(2));
    assert_eq!(one.next_write(at(2), VacancyUse::TakeIt, None), None);
    assert_eq!(one.next_deadline(at(2)), Some(at(3)));
    assert!(one.next_write(at(3), VacancyUse::TakeIt, None).is_some());
}

#[test]
fn reacquiring_our_own_lease_starts_a_new_epoch() {
    let (mut server, mut former) = (Server::default(), keeper("one"));
    turn(&mut former, &mut server, at(0));
    let mut one = keeper("one");
    turn(&mut one, &mut server, at(1));
    assert_eq!(epoch(&one, at(1)), Some(2));
}

#[test]
fn a_deleted_lease_gives_no_right() {
    let (mut server, mut one) = (Server::default(), keeper("one"));
    turn(&mut one, &mut server, at(0));
    server.lease = None;
    one.observe(None, at(1));
    assert_eq!(epoch(&one, at(1)), None);
    turn(&mut one, &mut server, at(1));
    assert_eq!(epoch(&one, at(1)), Some(2), "epochs only grow");
}

#[test]
fn notes_of_an_owner_are_written_at_once_and_kept_by_the_next_owner() {
    let (mut server, mut one, mut two) = (Server::default(), keeper("one"), keeper("two"));
    turn(&mut one, &mut server, at(0));
    let notes = LeaseNotes::from([("ebb.dev/ports-next".to_owned(), "10001".to_owned())]);
    one.note(notes.clone());
    turn(&mut one, &mut server, at(1));
    assert_eq!(one.noted(), Some(&notes));
    one.note(notes.clone());
    assert_eq!(one.next_write(at(1), VacancyUse::TakeIt, None), None, "it stands there");
    turn(&mut two, &mut server, at(1));
    turn(&mut two, &mut server, at(16));
    assert_eq!((epoch(&two, at(16)), two.noted()), (Some(2), Some(&notes)));
    assert_eq!(server.lease.map(|lease| lease.notes), Some(notes));
}
