use super::*;

fn at(milliseconds: u64) -> Timestamp {
    Timestamp::from_duration(Duration::from_secs(1000) + Duration::from_millis(milliseconds))
}

/// An API server with Leases, which refuses a write over another version than it has.
#[derive(Default)]
struct Server {
    leases: BTreeMap<AutoscalerLease, LeaseRecord>,
    versions: u32,
}

impl Server {
    fn write(&mut self, which: AutoscalerLease, write: &LeaseWrite) -> Result<String, ()> {
        let present = self.leases.get(&which).map(|lease| lease.resource_version.clone());
        if present != write.over {
            return Err(());
        }
        self.versions += 1;
        let resource_version = self.versions.to_string();
        let lease = LeaseRecord {
            holder: write.holder.clone(),
            transitions: write.transitions,
            lasts: crate::lease::LEASE,
            resource_version: resource_version.clone(),
            notes: write.notes.clone(),
        };
        self.leases.insert(which, lease);
        Ok(resource_version)
    }
}

fn replica(name: &str, count: u16) -> Buckets {
    Buckets::new(&ReplicaName::new(name), count)
}

fn look(buckets: &mut Buckets, server: &Server, now: Timestamp) {
    for (which, lease) in &server.leases {
        buckets.observe(*which, Some(lease.clone()), now);
    }
    buckets.listed(now);
}

/// Lets a replica look, write what it wants to, and hear how that went.
fn turn(buckets: &mut Buckets, server: &mut Server, now: Timestamp) {
    look(buckets, server, now);
    let mut asked = Vec::new();
    while let Some((which, write)) = buckets.next_write(now) {
        asked.push((which, server.write(which, &write)));
    }
    for (which, answer) in asked {
        match answer {
            Ok(version) => buckets.written(which, version, now),
            Err(()) => buckets.failed(which, now),
        }
    }
}

fn owned(buckets: &Buckets, now: Timestamp) -> Vec<u16> {
    buckets.rights(now).into_keys().map(|bucket| bucket.0).collect()
}

#[test]
fn a_single_replica_takes_all_buckets_one_by_one() {
    let (mut server, mut one) = (Server::default(), replica("one", 3));
    for (now, expected) in
        [(0, vec![0]), (499, vec![0]), (500, vec![0, 1]), (999, vec![0, 1]), (1000, vec![0, 1, 2])]
    {
        turn(&mut one, &mut server, at(now));
        assert_eq!(owned(&one, at(now)), expected, "at {now}");
        if expected.len() < 3 {
            let next = one.next_deadline(at(now)).expect("it wants more");
            assert!(next <= at(now / 500 * 500 + 500), "{next}");
        }
    }
    let ownership = one.ownership(at(1000));
    assert!(ownership.is_everything());
}

#[test]
fn two_replicas_that_start_together_get_one_of_two_buckets_each() {
    let (mut server, mut one, mut two) = (Server::default(), replica("one", 2), replica("two", 2));
    // Both ask for the first one before either hears of the other.
    look(&mut one, &server, at(0));
    look(&mut two, &server, at(0));
    let first = one.next_write(at(0)).expect("it is free");
    let second = two.next_write(at(0)).expect("as far as it knows");
    let expected = AutoscalerLease::Bucket(Bucket(0));
    assert_eq!((first.0, second.0), (expected, expected));
    let version = server.write(first.0, &first.1).expect("it was first");
    one.written(first.0, version, at(10));
    server.write(second.0, &second.1).expect_err("it was second");
    two.failed(second.0, at(10));
    for now in [20, 600, 1200] {
        turn(&mut two, &mut server, at(now));
        turn(&mut one, &mut server, at(now));
    }
    assert_eq!((owned(&one, at(1200)), owned(&two, at(1200))), (vec![0], vec![1]));
}

#[test]
fn a_replica_without_a_bucket_names_once_the_replicas_that_it_follows() {
    let (mut server, mut one, mut two) = (Server::default(), replica("one", 1), replica("two", 1));
    turn(&mut one, &mut server, at(0));
    turn(&mut two, &mut server, at(10));
    assert_eq!(one.take_followed(), None, "it decides itself");
    let owners = "one".to_owned();
    assert_eq!(two.take_followed(), Some(ClusterIncident::StandsBy { owners }));
    turn(&mut two, &mut server, at(600));
    assert_eq!(two.take_followed(), None, "it was said");
    one.leave();
    turn(&mut one, &mut server, at(1000));
    turn(&mut two, &mut server, at(1001));
    assert_eq!((owned(&two, at(1001)), two.take_followed()), (vec![0], None));
}

#[test]
fn a_released_bucket_goes_to_a_replica_without_one_first() {
    let mut server = Server::default();
    let (mut one, mut two, mut new) = (replica("one", 2), replica("two", 2), replica("new", 2));
    turn(&mut one, &mut server, at(0));
    turn(&mut two, &mut server, at(0));
    turn(&mut new, &mut server, at(0));
    one.leave();
    turn(&mut one, &mut server, at(1000));
    assert!(one.has_left());
    turn(&mut two, &mut server, at(1001));
    turn(&mut new, &mut server, at(1002));
    assert_eq!((owned(&two, at(1002)), owned(&new, at(1002))), (vec![1], vec![0]));
    // With no other replica there, the one that stays takes it too, within a second.
    new.leave();
    turn(&mut new, &mut server, at(2000));
    turn(&mut two, &mut server, at(2001));
    assert_eq!(owned(&two, at(2001)), [1]);
    turn(&mut two, &mut server, at(2501));
    assert_eq!(owned(&two, at(2501)), [0, 1]);
    let epoch = two.rights(at(2501))[&Bucket(0)].epoch;
    assert_eq!(epoch, Epoch(4), "taken for the third time, and the other one was taken in between");
}

#[test]
fn an_epoch_is_beyond_all_before_it_also_where_there_were_more_or_fewer_buckets() {
    let (mut server, mut greatest, mut now) = (Server::default(), Epoch(0), 0);
    for (count, times) in [(2, 3), (1, 2), (2, 1), (3, 2), (1, 1), (3, 1)] {
        for _ in 0..times {
            let mut owner = replica(&format!("owner-{now}"), count);
            for _ in 0..count {
                turn(&mut owner, &mut server, at(now));
                now += 500;
            }
            let rights = owner.rights(at(now));
            assert_eq!(rights.len(), usize::from(count));
            let epochs: Vec<Epoch> = rights.values().map(|right| right.epoch).collect();
            assert!(epochs.iter().all(|epoch| *epoch > greatest), "{count}: {epochs:?}, after {greatest:?}");
            greatest = epochs.into_iter().max().expect("it has some");
            owner.leave();
            turn(&mut owner, &mut server, at(now));
        }
    }
}

#[test]
fn no_bucket_is_taken_beside_another_number_of_buckets() {
    for (theirs, ours) in [(1, 2), (2, 1), (3, 2)] {
        let mut server = Server::default();
        let (mut one, mut two) = (replica("one", theirs), replica("two", ours));
        for now in [0, 500, 1000] {
            turn(&mut one, &mut server, at(now));
        }
        if theirs > 1 {
            // So that there is something to take, if it were not for that.
            server.leases.remove(&AutoscalerLease::Bucket(Bucket(0)));
        }
        turn(&mut two, &mut server, at(1000));
        assert_eq!(owned(&two, at(1000)), Vec::<u16>::new(), "{theirs} and {ours}");
        one.leave();
        turn(&mut one, &mut server, at(2000));
        for now in [2000, 2500, 3000, 3500] {
            turn(&mut two, &mut server, at(now));
        }
        assert_eq!(owned(&two, at(3500)).len(), usize::from(ours), "once they are gone");
    }
}

/// Turns of several replicas, 100 ms apart, each of which renews what it has once a second.
fn turns(replicas: &mut [&mut Buckets], server: &mut Server, times: std::ops::Range<u64>) {
    for tenth in times {
        for replica in &mut *replicas {
            if tenth % 10 == 0 {
                replica.renew();
            }
            turn(replica, server, at(tenth * 100));
        }
        let now = at(tenth * 100);
        let all: Vec<_> = replicas.iter().flat_map(|replica| owned(replica, now)).collect();
        let each: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(all.len(), each.len(), "two decide about one at {tenth}: {all:?}");
    }
}

#[test]
fn a_replica_without_buckets_is_given_one_by_a_replica_with_several() {
    let mut server = Server::default();
    let (mut one, mut two, mut three) = (replica("one", 3), replica("two", 3), replica("three", 3));
    turns(&mut [&mut one], &mut server, 0..30);
    assert_eq!(owned(&one, at(2900)), [0, 1, 2]);
    turns(&mut [&mut one, &mut two], &mut server, 30..40);
    assert_eq!((owned(&one, at(3900)), owned(&two, at(3900))), (vec![0, 1], vec![2]));
    // Not again before the first replica that asked may be gone without a word.
    turns(&mut [&mut one, &mut two, &mut three], &mut server, 40..300);
    let now = at(29_900);
    assert_eq!((owned(&one, now), owned(&two, now), owned(&three, now)), (vec![0], vec![2], vec![1]));
    let before = server.versions;
    // No replica asks for anything any more: each renews its own once a second.
    turns(&mut [&mut one, &mut two, &mut three], &mut server, 300..400);
    assert_eq!(server.versions - before, 30);
    for replica in [&mut one, &mut two, &mut three] {
        replica.leave();
        turn(replica, &mut server, at(40_000));
        assert!(replica.has_left());
    }
    assert!(server.leases.values().all(|lease| lease.holder.is_none()), "{:?}", server.leases);
}

#[test]
fn a_given_bucket_that_is_not_taken_returns_and_stays() {
    let (mut server, mut one, mut two) = (Server::default(), replica("one", 2), replica("two", 2));
    turns(&mut [&mut one], &mut server, 0..20);
    turn(&mut two, &mut server, at(2000));
    assert_eq!(server.leases[&AutoscalerLease::Waiting].holder.as_deref(), Some("two"));
    // It was killed.
    turn(&mut one, &mut server, at(2100));
    assert_eq!(owned(&one, at(2100)), [0]);
    turns(&mut [&mut one], &mut server, 22..30);
    assert_eq!(owned(&one, at(2900)), [0, 1], "no other replica wants it");
    let epoch = one.rights(at(2900))[&Bucket(1)].epoch;
    turns(&mut [&mut one], &mut server, 30..600);
    assert_eq!(one.rights(at(59_900))[&Bucket(1)].epoch, epoch, "it has stayed since");
}

#[test]
fn a_bucket_that_is_being_given_away_has_no_owner() {
    let (mut server, mut one, mut two) = (Server::default(), replica("one", 2), replica("two", 2));
    turns(&mut [&mut one], &mut server, 0..20);
    turn(&mut two, &mut server, at(2000));
    look(&mut one, &server, at(2100));
    let (which, write) = one.next_write(at(2100)).expect("it gives one");
    assert_eq!((which, write.holder), (AutoscalerLease::Bucket(Bucket(1)), None));
    assert_eq!(owned(&one, at(2100)), [0], "before another replica knows");
    // The write was lost, and is tried again.
    one.failed(which, at(2100));
    turns(&mut [&mut one, &mut two], &mut server, 22..60);
    assert_eq!((owned(&one, at(5900)), owned(&two, at(5900))), (vec![0], vec![1]));
}

#[test]
fn a_single_bucket_is_never_asked_for() {
    let (mut server, mut one, mut two) = (Server::default(), replica("one", 1), replica("two", 1));
    turns(&mut [&mut one, &mut two], &mut server, 0..100);
    assert_eq!((owned(&one, at(9900)), server.leases.len()), (vec![0], 1));
}

/// Knative's autoscalers note no number of buckets: it stands in the names.
#[test]
fn a_lease_of_knatives_without_a_note_stops_no_bucket() {
    let theirs = LeaseRecord {
        holder: Some("autoscaler-7d9f_10.0.0.7".to_owned()),
        transitions: 3,
        lasts: Duration::from_secs(60),
        resource_version: "1".to_owned(),
        notes: LeaseNotes::new(),
    };
    let takes = |names: LeaseNames| {
        let mut buckets = replica("ours", 2).with_names(names);
        buckets.enter();
        buckets.observe(AutoscalerLease::Bucket(Bucket(0)), Some(theirs.clone()), at(0));
        buckets.listed(at(0));
        buckets.next_write(at(0)).map(|(which, _)| which)
    };
    let knative = crate::knative::BucketCount::new(2).map(crate::knative::KnativeBuckets::new);
    let names = LeaseNames::Knative(knative.expect("1 to 10"));
    assert_eq!(takes(names), Some(AutoscalerLease::Bucket(Bucket(1))));
    assert_eq!(takes(LeaseNames::Ebb), None, "elsewhere it stands for one bucket");
}
