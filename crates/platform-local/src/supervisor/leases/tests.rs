use super::*;

const ONE: SeatId = SeatId(1);
const TWO: SeatId = SeatId(2);

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_secs(1000 + seconds)
}

fn name(number: usize) -> ReplicaName {
    ReplicaName::new(&format!("autoscaler-{number}"))
}

/// Leases of two autoscalers, both seated.
fn two_seated() -> Leases {
    let mut leases = Leases::new(&[name(1), name(2)], at(0));
    leases.take_seat(ONE, name(1), at(0));
    leases.take_seat(TWO, name(2), at(0));
    leases
}

/// The buckets of a seat with their epochs.
fn owned(leases: &Leases, seat: SeatId) -> Vec<(u16, u64)> {
    leases.ownership(seat).epochs.iter().map(|(bucket, epoch)| (bucket.0, epoch.0)).collect()
}

fn fence(bucket: u16, epoch: u64) -> Fence {
    Fence { bucket: Bucket(bucket), epoch: Epoch(epoch) }
}

/// Time as the supervisor sees it: it looks whenever something is due.
fn pass_until(leases: &mut Leases, end: Timestamp) {
    while let Some(due) = leases.next_deadline().filter(|due| *due <= end) {
        leases.assign_vacant(due);
    }
}

#[test]
fn each_gets_its_own_bucket_whoever_comes_first() {
    let mut leases = Leases::new(&[name(1), name(2)], at(0));
    leases.take_seat(TWO, name(2), at(1));
    assert_eq!(owned(&leases, TWO), [(1, 1)], "the other one may still come");
    leases.take_seat(ONE, name(1), at(2));
    assert_eq!((owned(&leases, ONE), owned(&leases, TWO)), (vec![(0, 2)], vec![(1, 1)]));
    assert_eq!(leases.ownership(ONE).buckets, 2);
}

#[test]
fn one_that_never_comes_is_waited_for_as_long_as_for_one_that_hangs() {
    let mut leases = Leases::new(&[name(1), name(2)], at(0));
    leases.take_seat(TWO, name(2), at(1));
    leases.renew([TWO], at(10));
    pass_until(&mut leases, at(14));
    assert_eq!(owned(&leases, TWO), [(1, 1)]);
    pass_until(&mut leases, at(15));
    assert_eq!(owned(&leases, TWO), [(0, 2), (1, 1)]);
}

#[test]
fn an_unrenewed_lease_goes_to_a_seat_that_renewed() {
    let mut leases = two_seated();
    for second in [5, 10, 14] {
        leases.renew([TWO], at(second));
    }
    assert!(leases.is_in_force(ONE, fence(0, 1)));
    assert_eq!(leases.next_deadline(), Some(at(15)));
    pass_until(&mut leases, at(15));
    assert_eq!(owned(&leases, TWO), [(0, 3), (1, 2)]);
    assert_eq!(owned(&leases, ONE), []);
    assert!(!leases.is_in_force(ONE, fence(0, 1)), "its late orders are refused");
    assert!(leases.is_in_force(TWO, fence(0, 3)) && leases.is_in_force(TWO, fence(1, 2)));
    // It lives again: nothing moves back, but it stands ready.
    leases.renew([ONE, TWO], at(20));
    assert_eq!(owned(&leases, ONE), []);
    pass_until(&mut leases, at(34));
    leases.renew([ONE], at(34));
    pass_until(&mut leases, at(35));
    assert_eq!(owned(&leases, ONE), [(0, 4), (1, 5)]);
}

#[test]
fn a_lease_that_ran_out_stays_where_it_is_while_nobody_else_is_alive() {
    let mut leases = two_seated();
    pass_until(&mut leases, at(60));
    assert!(leases.is_in_force(ONE, fence(0, 1)) && leases.is_in_force(TWO, fence(1, 2)));
    assert_eq!(leases.next_deadline(), None, "nothing more happens by itself");
    leases.renew([TWO], at(60));
    assert_eq!(owned(&leases, TWO), [(0, 3), (1, 2)]);
}

#[test]
fn a_left_seat_is_vacant_at_once_and_a_rebuilt_autoscaler_gets_its_bucket_back() {
    let mut leases = two_seated();
    leases.leave_seat(ONE, at(3));
    assert_eq!(owned(&leases, TWO), [(0, 3), (1, 2)]);
    leases.take_seat(SeatId(3), name(1), at(4));
    assert_eq!((owned(&leases, SeatId(3)), owned(&leases, TWO)), (vec![(0, 4)], vec![(1, 2)]));
    // One that is replaced before it has left: its seat counts no more, and its leaving changes nothing.
    leases.take_seat(SeatId(4), name(1), at(5));
    leases.leave_seat(SeatId(3), at(5));
    assert_eq!((owned(&leases, SeatId(4)), owned(&leases, SeatId(3))), (vec![(0, 5)], vec![]));
    assert!(!leases.is_in_force(SeatId(3), fence(0, 4)));
}

#[test]
fn a_supervisor_that_stood_still_itself_judges_nobody_by_that() {
    let mut leases = two_seated();
    // It was stopped for a minute, and one of the two is heard before the other.
    leases.renew([TWO], at(60));
    assert_eq!((owned(&leases, ONE), owned(&leases, TWO)), (vec![(0, 1)], vec![(1, 2)]));
    leases.renew([TWO], at(74));
    pass_until(&mut leases, at(75));
    assert_eq!(owned(&leases, TWO), [(0, 3), (1, 2)], "a whole lease later it is judged again");
}

#[test]
fn a_single_autoscaler_owns_everything_for_ever() {
    let mut leases = Leases::new(&[name(1)], at(0));
    leases.take_seat(ONE, name(1), at(0));
    assert_eq!(leases.ownership(ONE), Ownership::of_everything(Epoch(1)));
    assert_eq!((leases.next_deadline(), Leases::renew_every(1)), (None, None));
    leases.take_seat(TWO, name(1), at(1));
    assert_eq!(leases.ownership(TWO), Ownership::of_everything(Epoch(2)));
    assert!(!leases.is_in_force(ONE, fence(0, 1)) && leases.is_in_force(TWO, fence(0, 2)));
}

#[test]
fn epochs_go_on_after_those_of_another_process_and_never_back() {
    let mut leases = Leases::new(&[name(1)], at(0));
    leases.begin_after(Epoch(7));
    leases.take_seat(ONE, name(1), at(0));
    assert_eq!(owned(&leases, ONE), [(0, 8)]);
    leases.begin_after(Epoch(3));
    leases.take_seat(TWO, name(1), at(1));
    assert_eq!(owned(&leases, TWO), [(0, 9)]);
}
