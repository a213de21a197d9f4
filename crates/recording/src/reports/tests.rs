//! Calls come out of frames as they were handled, whatever they are, and in few bytes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use prost::Message as _;
use vocabulary::{
    Concurrency, Load, MilliValue, PodCount, RequestRate, ResourceUsage, RevisionLoad, RevisionName, Sample,
    Timestamp,
};

use super::*;
use crate::block::block_of;
use crate::frames::outcome_out;
use crate::outcome::CommandOutcome;
use crate::wire::proto::{FrameBody, FrameMessage, ReportsMessage};

/// A call of a made-up segment, with the time of the call before.
#[derive(Clone, Debug)]
struct TimedCall {
    before: Timestamp,
    at: Timestamp,
    call: SteadyCall<'static>,
    outcome: CommandOutcome,
}

/// A frame with the times that its segment gives it.
struct TimedFrame {
    before: Timestamp,
    at: Timestamp,
    message: ReportsMessage,
}

/// From which a call is made that fits to those before.
#[derive(Clone, Debug)]
struct CallPlan {
    kind: u8,
    link: u64,
    skipped_seconds: u64,
    /// After the call before, in nanoseconds; else its link keeps its pace.
    after: Option<u32>,
    load: Load,
    usage: Option<ResourceUsage>,
    loads: Vec<(u8, Load, u64)>,
    outcome: CommandOutcome,
}

fn revision(number: u8) -> RevisionName {
    RevisionName::new("default", "service", &format!("app-{number}")).expect("a name")
}

/// Numbers of requests, sums of times, and any numbers at all.
fn quantity() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0_f64),
        (0..300_u32).prop_map(f64::from),
        any::<u32>().prop_map(|held| f64::from(held) / 1e9),
        (any::<u32>(), any::<u32>()).prop_map(|(one, two)| f64::from(one) / 1e9 + f64::from(two) / 1e9),
        0.0..1e9,
    ]
}

fn load() -> impl Strategy<Value = Load> {
    let queued = prop_oneof![3 => Just(0_u32), 1 => any::<u32>()];
    let parts = (quantity(), quantity(), quantity(), quantity(), queued, 0..4_u8);
    parts.prop_map(|(held, rate, proxied_held, proxied_rate, queued, form)| {
        let (concurrency, request_rate) = (Concurrency::clamped(held), RequestRate::clamped(rate));
        let (proxied_concurrency, proxied_request_rate) = match form {
            0 => (Concurrency::ZERO, RequestRate::ZERO),
            1 => (concurrency, request_rate),
            2 => (Concurrency::clamped(proxied_held), RequestRate::clamped(proxied_rate)),
            _ => return Load { queued, ..Load::default() },
        };
        Load { concurrency, proxied_concurrency, request_rate, proxied_request_rate, queued }
    })
}

fn usage() -> impl Strategy<Value = ResourceUsage> {
    let other = (any::<i64>(), any::<i64>(), any::<u64>()).prop_map(|(cpu, memory, window)| ResourceUsage {
        cpu: MilliValue::new(cpu),
        memory: MilliValue::new(memory),
        window: Duration::from_nanos(window),
    });
    prop_oneof![Just(ResourceUsage::default()), other]
}

fn outcome() -> impl Strategy<Value = CommandOutcome> {
    let counts = prop::collection::vec((0..6_u8, 0..1_000_u32), 0..3);
    let some = (any::<u64>(), any::<u32>(), counts).prop_map(|(commands, decided, counts)| CommandOutcome {
        commands,
        decided,
        counts: counts.into_iter().map(|(number, count)| (revision(number), PodCount::new(count))).collect(),
        ..CommandOutcome::default()
    });
    prop_oneof![3 => Just(CommandOutcome::default()), 1 => some]
}

fn plan() -> impl Strategy<Value = CallPlan> {
    let skipped = prop_oneof![4 => Just(0_u64), 1 => 0..1_000_u64];
    let wait = prop_oneof![2 => Just(0_u64), 1 => any::<u64>()];
    let loads = prop::collection::vec((0..6_u8, load(), wait), 0..5);
    let after = prop::option::of(any::<u32>());
    let parts = ((0..3_u8, 0..4_u64, skipped), after, load(), prop::option::of(usage()), loads, outcome());
    parts.prop_map(|((kind, link, skipped_seconds), after, load, usage, loads, outcome)| CallPlan {
        kind,
        link,
        skipped_seconds,
        after,
        load,
        usage,
        loads,
        outcome,
    })
}

/// Calls of links that keep their pace, or do not.
fn calls(plans: Vec<CallPlan>) -> Vec<TimedCall> {
    let mut before = Timestamp::from_secs(3_600);
    let mut links: BTreeMap<u64, (u64, Timestamp)> = BTreeMap::new();
    let mut calls = Vec::new();
    for plan in plans {
        let (last_second, last_at) = links.get(&plan.link).copied().unwrap_or((0, before));
        let passed = 1 + plan.skipped_seconds;
        let second = last_second + passed;
        let pace = last_at + Duration::from_secs(passed);
        let at = plan.after.map_or(pace, |after| before + Duration::from_nanos(after.into()));
        let call = match plan.kind {
            0 => SteadyCall::Advance,
            1 => SteadyCall::PodLoad {
                link: plan.link,
                sample: Sample { second, load: plan.load },
                usage: plan.usage,
            },
            _ => {
                let loads = plan.loads.into_iter().map(|(number, load, wait)| RevisionLoad {
                    revision: revision(number),
                    load,
                    oldest_wait: Duration::from_nanos(if load.queued > 0 { wait } else { 0 }),
                    callers: Vec::new(),
                });
                SteadyCall::ActivatorLoads { link: plan.link, second, loads: Cow::Owned(loads.collect()) }
            }
        };
        if plan.kind > 0 {
            links.insert(plan.link, (second, at));
        }
        calls.push(TimedCall { before, at, call, outcome: plan.outcome });
        before = at;
    }
    calls
}

/// The frames of a segment, of so many calls each.
fn packed(calls: &[TimedCall], together: usize) -> Vec<TimedFrame> {
    let mut packer = ReportPacker::default();
    let mut frames = Vec::new();
    for group in calls.chunks(together) {
        for TimedCall { before, at, call, outcome } in group {
            packer.push(*before, *at, call, outcome_out(outcome).as_ref());
        }
        if let (Some(first), Some(last), Some(message)) = (group.first(), group.last(), packer.take()) {
            frames.push(TimedFrame { before: first.before, at: last.at, message });
        }
    }
    frames
}

/// The bytes of frames of reports in a file, for each of so many calls.
fn bytes_each(frames: &[TimedFrame], calls: usize) -> f64 {
    let mut bytes = 0;
    for TimedFrame { before, at, message } in frames {
        let after = i64::try_from(at.saturating_since(*before).as_nanos()).expect("a short time");
        let frame = FrameMessage { after, body: Some(FrameBody::Reports(message.clone())), outcome: None };
        bytes += block_of(&frame.encode_length_delimited_to_vec()).len();
    }
    let number = |count: usize| f64::from(u32::try_from(count).expect("a few megabytes"));
    number(bytes) / number(calls)
}

proptest! {
    #[test]
    fn calls_are_read_as_they_were_handled(
        plans in prop::collection::vec(plan(), 1..40),
        together in 1..20_usize,
    ) {
        let calls = calls(plans);
        let mut unpacker = ReportUnpacker::default();
        let mut read = Vec::new();
        for TimedFrame { before, at, message } in packed(&calls, together) {
            let frame = unpacker.unpack(&message, before, at);
            read.extend(frame.map_err(|fault| TestCaseError::fail(fault.to_string()))?);
        }
        prop_assert_eq!(read.len(), calls.len());
        for (read, handled) in read.iter().zip(calls) {
            let content = handled.call.into_content();
            prop_assert_eq!(format!("{:?}", &read.content), format!("{content:?}"));
            prop_assert_eq!((read.at, &read.outcome), (handled.at, &handled.outcome));
        }
    }

    #[test]
    fn a_damaged_frame_is_read_or_refused_with_its_place(
        plans in prop::collection::vec(plan(), 1..20),
        (column, place, bits, cut) in (0..3_u8, any::<prop::sample::Index>(), 1..=255_u8, any::<bool>()),
    ) {
        let calls = calls(plans);
        for TimedFrame { before, at, mut message } in packed(&calls, 20) {
            let column = match column {
                0 => &mut message.heads,
                1 => &mut message.codes,
                _ => &mut message.values,
            };
            if column.is_empty() {
                continue;
            }
            let place = place.index(column.len());
            if cut { column.truncate(place) } else { column[place] ^= bits }
            if let Err(fault) = ReportUnpacker::default().unpack(&message, before, at) {
                let text = fault.to_string();
                prop_assert!(text.contains(" of reports ") || text.contains("revision"), "{text}");
            }
        }
    }

    #[test]
    fn bytes_of_any_kind_are_read_or_refused(
        heads in prop::collection::vec(any::<u8>(), 0..40),
        codes in prop::collection::vec(any::<u8>(), 0..40),
        values in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let message = ReportsMessage { heads, codes, values };
        // It may be a frame by chance, but no bytes of it end the program or take its memory.
        let read = ReportUnpacker::default().unpack(&message, Timestamp::ZERO, Timestamp::ZERO);
        prop_assert!(read.is_err() || message.heads.len() >= read.map_or(0, |calls| calls.len()));
    }
}

#[test]
fn a_frame_of_an_earlier_part_of_its_segment_is_missed() {
    let sample = |second| Sample { second, ..Sample::default() };
    let call = |second: u64| TimedCall {
        before: Timestamp::from_secs(second),
        at: Timestamp::from_secs(second + 1),
        call: SteadyCall::PodLoad { link: 7, sample: sample(second), usage: None },
        outcome: CommandOutcome::default(),
    };
    let frames = packed(&[call(1), call(2), call(3)], 2);
    let TimedFrame { before, at, message } = &frames[1];
    let fault =
        ReportUnpacker::default().unpack(message, *before, *at).expect_err("it needs the frame before");
    assert_eq!(fault.to_string(), "the heads of reports expect a link that has no follower");
    // Its link is expected, its second and its time: a byte says all but its load.
    assert_eq!((message.heads.len(), message.codes.len(), message.values.len()), (1, 1, 0));
}

/// Records of today are read by every later program: these bytes mean these calls for ever.
#[test]
fn the_form_of_a_frame_is_a_promise() {
    let times = [1_000, 1_064, 1_064, 1_064, 1_000_001_064].map(Timestamp::from_nanos);
    let name = RevisionName::parse("default/service/a").expect("three parts");
    let held = Concurrency::clamped(0.25);
    let asked = RequestRate::clamped(2.0);
    let load = Load {
        concurrency: held,
        proxied_concurrency: held,
        request_rate: asked,
        proxied_request_rate: asked,
        queued: 0,
    };
    let waiting = RevisionLoad {
        revision: name.clone(),
        load: Load { queued: 1, ..Load::default() },
        oldest_wait: Duration::from_nanos(3),
        callers: Vec::new(),
    };
    let decided = CommandOutcome {
        commands: 1,
        decided: 1,
        counts: vec![(name, PodCount::new(3))],
        ..CommandOutcome::default()
    };
    let nothing = CommandOutcome::default();
    let idle = Sample { second: 6, load: Load::default() };
    let calls = [
        (SteadyCall::PodLoad { link: 7, sample: Sample { second: 5, load }, usage: None }, nothing.clone()),
        (SteadyCall::Advance, decided),
        (SteadyCall::ActivatorLoads { link: 8, second: 9, loads: vec![waiting].into() }, nothing.clone()),
        (SteadyCall::PodLoad { link: 7, sample: idle, usage: None }, nothing),
    ];
    let timed = calls.into_iter().zip(times.windows(2));
    let timed =
        timed.map(|((call, outcome), times)| TimedCall { before: times[0], at: times[1], call, outcome });
    let frames = packed(&timed.collect::<Vec<_>>(), 4);
    let [TimedFrame { message, .. }] = frames.as_slice() else { panic!("four calls are one frame") };
    assert_eq!(message.heads, [0x01, 0x0c, 0x02, 0x29]);
    assert_eq!(message.codes, [0x4c, 0x10, 0x00]);
    let of_pod: [u8; 8] = [0x0e, 0x05, 0x80, 0x01, 0x00, 0x94, 0x35, 0x77];
    let of_outcome = [&[1_u8, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 17][..], b"default/service/a", &[3]].concat();
    let of_activator: [u8; 8] = [2, 9, 0, 1, 0, 1, 1, 3];
    assert_eq!(message.values, [&of_pod[..], &of_outcome[..], &of_activator[..], &[1][..]].concat());
}

/// The mix of the benchmark `fleet`: a report of each link a second, a tenth of them busy, each revision
/// decided every other second, and times and loads as noisy as on a real machine.
#[test]
fn reports_of_a_fleet_take_few_bytes() {
    const LINKS: u64 = 10_000;
    const SECONDS: u64 = 6;
    let mut chance = Chance(7);
    let (mut calls, mut before) = (Vec::new(), Timestamp::from_secs(3_600));
    for second in 0..SECONDS {
        let began = Timestamp::from_secs(3_601 + second);
        let mut reports: Vec<(Timestamp, u64)> = (0..LINKS)
            .map(|link| {
                let planned = Duration::from_millis(link * 7 % 1_000);
                (began + planned + Duration::from_nanos(chance.below(1_000_000)), link)
            })
            .collect();
        reports.sort_unstable();
        for (place, (at, link)) in (0_u64..).zip(reports) {
            let load = if link.is_multiple_of(10) { busy(&mut chance) } else { Load::default() };
            let call = SteadyCall::PodLoad { link, sample: Sample { second, load }, usage: None };
            calls.push(TimedCall { before, at, call, outcome: CommandOutcome::default() });
            before = at;
            // Ticks of revisions that began together are done together.
            if place.is_multiple_of(100) {
                let outcome = decided(place / 2..place / 2 + 50, &mut chance);
                calls.push(TimedCall { before, at, call: SteadyCall::Advance, outcome });
            }
        }
    }
    let reports = usize::try_from(LINKS * SECONDS).expect("sixty thousand");
    let bytes = bytes_each(&packed(&calls, 8_000), reports);
    println!("{bytes:.1} bytes for each report of a fleet");
    assert!(bytes <= 12.0, "{bytes:.1} bytes for each report");
}

/// A pod with a load that no clock rounded.
fn busy(chance: &mut Chance) -> Load {
    let noise = f64::from(u32::try_from(chance.below(1 << 32)).expect("32 bits")) / 4_294_967_296.0;
    let requests = f64::from(u32::try_from(chance.below(130)).expect("a few"));
    Load {
        concurrency: Concurrency::clamped(6.0 + noise),
        request_rate: RequestRate::clamped(requests),
        ..Load::default()
    }
}

/// A decision about each of these revisions.
fn decided(revisions: std::ops::Range<u64>, chance: &mut Chance) -> CommandOutcome {
    let counts: Vec<_> = revisions
        .map(|number| {
            let name = RevisionName::new("default", "service", &format!("revision-{number:05}"));
            (name.expect("a name"), PodCount::ONE)
        })
        .collect();
    CommandOutcome {
        commands: chance.next(),
        decided: u32::try_from(counts.len()).expect("a few"),
        counts,
        ..CommandOutcome::default()
    }
}

/// The generator `SplitMix64`, whose numbers are the same everywhere.
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}
