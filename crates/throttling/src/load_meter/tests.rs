//! Rows S1–S7 of the data-plane vectors, and what we expect in place of the rows about early reports (S9–S16,
//! N9–N12).

use proptest::prelude::*;

use super::*;

/// What happens at a millisecond.
#[derive(Clone, Copy, Debug)]
enum Step {
    In(Origin),
    Out(Origin),
    /// Close a second and expect: concurrency, its proxied part, arrivals, their proxied part.
    Report(f64, f64, f64, f64),
}
use Origin::{Direct, Proxied};
use Step::{In, Out, Report};

/// A vector's name and its steps, each at a millisecond.
type Row = (&'static str, &'static [(u64, Step)]);

fn check(rows: &[Row]) {
    for (name, steps) in rows {
        let mut meter = LoadMeter::new(Timestamp::ZERO);
        for &(milliseconds, step) in *steps {
            let now = Timestamp::from_millis(milliseconds);
            match step {
                In(origin) => meter.arrived(origin, now),
                Out(origin) => meter.finished(origin, now),
                Report(concurrency, proxied, arrivals, proxied_arrivals) => {
                    expect(
                        name,
                        meter.close_seconds(1, now),
                        [concurrency, proxied, arrivals, proxied_arrivals],
                    );
                }
            }
        }
    }
}

fn expect(name: &str, load: Load, [concurrency, proxied, arrivals, proxied_arrivals]: [f64; 4]) {
    let pairs = [
        ("concurrency", load.concurrency.value(), concurrency),
        ("proxied concurrency", load.proxied_concurrency.value(), proxied),
        ("arrivals", load.request_rate.value(), arrivals),
        ("proxied arrivals", load.proxied_request_rate.value(), proxied_arrivals),
    ];
    for (what, got, wanted) in pairs {
        assert!((got - wanted).abs() < 1e-9, "{name}: {what} is {got}, not {wanted}");
    }
}

#[test]
fn a_second_is_averaged_over_time() {
    check(&[
        ("S1", &[(0, In(Direct)), (500, Out(Direct)), (1000, Report(0.5, 0.0, 1.0, 0.0))]),
        (
            "S2",
            &[
                (0, In(Direct)),
                (500, Out(Direct)),
                (500, In(Direct)),
                (1000, Out(Direct)),
                (1000, Report(1.0, 0.0, 2.0, 0.0)),
            ],
        ),
        ("S3", &[(200, In(Direct)), (1000, Report(0.8, 0.0, 1.0, 0.0)), (2000, Report(1.0, 0.0, 0.0, 0.0))]),
        (
            "S4",
            &[
                (0, In(Proxied)),
                (0, In(Direct)),
                (100, Out(Direct)),
                (500, Out(Proxied)),
                (1000, Report(0.6, 0.5, 2.0, 1.0)),
            ],
        ),
        (
            "S5: a time before the last one still counts the event",
            &[(500, In(Direct)), (300, In(Direct)), (1000, Report(1.0, 0.0, 2.0, 0.0))],
        ),
        ("S6", &[(0, In(Direct)), (1000, Report(1.0, 0.0, 1.0, 0.0)), (1000, Report(0.0, 0.0, 0.0, 0.0))]),
    ]);
}

/// The load of B1: of eleven requests at concurrency 1, one ends every second.
#[test]
fn s8_what_waits_for_a_slot_counts() {
    let mut meter = LoadMeter::new(Timestamp::ZERO);
    for _ in 0..11 {
        meter.arrived(Direct, Timestamp::ZERO);
    }
    meter.finished(Direct, Timestamp::from_secs(1));
    expect("S8, first second", meter.close_seconds(1, Timestamp::from_secs(1)), [11.0, 0.0, 11.0, 0.0]);
    expect("S8, second", meter.close_seconds(1, Timestamp::from_secs(2)), [10.0, 0.0, 0.0, 0.0]);
}

#[test]
fn s7_counts_are_divided_by_the_nominal_period() {
    let mut meter = LoadMeter::new(Timestamp::ZERO);
    for index in 0..39 {
        meter.arrived(if index < 15 { Proxied } else { Direct }, Timestamp::ZERO);
    }
    for index in 0..36 {
        meter.finished(if index < 13 { Proxied } else { Direct }, Timestamp::ZERO);
    }
    let load = meter.close_period(Duration::from_secs(10), Timestamp::from_secs(10));
    expect("S7", load, [3.0, 2.0, 3.9, 1.5]);
}

/// Six arrivals, while the thread that closes the seconds had no core for three of them.
#[test]
fn a_stall_is_shared_out_over_its_seconds() {
    let mut meter = LoadMeter::new(Timestamp::ZERO);
    for milliseconds in [0, 0, 700, 1_200, 2_500, 2_900] {
        meter.arrived(Direct, Timestamp::from_millis(milliseconds));
    }
    for _ in 0..4 {
        meter.finished(Direct, Timestamp::from_millis(2_900));
    }
    // Two until 0.7 s, three until 1.2, four until 2.5, five until 2.9, two until 3.
    let held = (2.0 * 0.7 + 3.0 * 0.5 + 4.0 * 1.3 + 5.0 * 0.4 + 2.0 * 0.1) / 3.0;
    expect("each of three", meter.close_seconds(3, Timestamp::from_secs(3)), [held, 0.0, 2.0, 0.0]);
    expect("the next", meter.close_seconds(1, Timestamp::from_secs(4)), [2.0, 0.0, 0.0, 0.0]);
}

/// Knative reports the first request early and subtracts it later; a second here says all that was in it.
#[test]
fn nothing_is_subtracted_after_an_early_report() {
    check(&[
        (
            "S9–S11",
            &[
                (0, In(Direct)),
                (250, In(Direct)),
                (500, Report(1.5, 0.0, 2.0, 0.0)),
                (1000, Out(Direct)),
                (1500, Report(1.5, 0.0, 0.0, 0.0)),
                (1500, Out(Direct)),
                (2500, Report(0.0, 0.0, 0.0, 0.0)),
            ],
        ),
        (
            "S12, N10",
            &[
                (0, In(Direct)),
                (0, In(Direct)),
                (1, Report(2.0, 0.0, 2.0, 0.0)),
                (2, Report(2.0, 0.0, 0.0, 0.0)),
            ],
        ),
        (
            "S13, N9",
            &[
                (0, In(Direct)),
                (1, Out(Direct)),
                (1, In(Direct)),
                (2, Out(Direct)),
                (2, Report(1.0, 0.0, 2.0, 0.0)),
            ],
        ),
        (
            "S14, N12",
            &[
                (0, In(Direct)),
                (0, In(Direct)),
                (1, Out(Direct)),
                (2, Out(Direct)),
                (2, Report(1.5, 0.0, 2.0, 0.0)),
            ],
        ),
        (
            "S15",
            &[
                (0, In(Direct)),
                (0, Out(Direct)),
                (0, In(Direct)),
                (0, Out(Direct)),
                (0, In(Direct)),
                (0, Out(Direct)),
                (1000, Report(0.0, 0.0, 3.0, 0.0)),
            ],
        ),
        (
            "S16, N11",
            &[
                (0, In(Direct)),
                (1, Out(Direct)),
                (1, Report(1.0, 0.0, 1.0, 0.0)),
                (2, Report(0.0, 0.0, 0.0, 0.0)),
                (3, In(Direct)),
                (4, Report(0.5, 0.0, 1.0, 0.0)),
            ],
        ),
    ]);
}

proptest! {
    #[test]
    fn the_proxied_part_never_exceeds_the_whole(
        events in proptest::collection::vec((0..50u64, any::<bool>(), any::<bool>()), 0..100),
    ) {
        let mut meter = LoadMeter::new(Timestamp::ZERO);
        let mut now = 0;
        for (later, proxied, arrives) in events {
            now += later;
            let origin = if proxied { Proxied } else { Direct };
            let present = meter.present();
            let held = if proxied { present.proxied } else { present.in_flight - present.proxied };
            if arrives {
                meter.arrived(origin, Timestamp::from_millis(now));
            } else if held > 0 {
                meter.finished(origin, Timestamp::from_millis(now));
            }
        }
        let load = meter.close_seconds(1, Timestamp::from_millis(now + 1));
        prop_assert!(load.proxied_concurrency <= load.concurrency);
        prop_assert!(load.proxied_request_rate <= load.request_rate);
    }
}
