//! What single metrics ask for: rows A, B, C, D and N.

use super::*;

/// `id | current | target | pods | settings | count | reported | average`. Pods: a number is what a settled
/// pod uses; `u` one that never was ready, `p` one that is pending, `m` one without a sample, `i` one on its
/// way out, `f` a failed one, each of the last three but `m` with a sample that would matter; `x3200` is a
/// sample of an unknown pod. `req=` the requests in the order of the pods (`-` for none).
pub(in crate::hpa) const UTILIZATION: &str = "
    A1  | 3 | 30%  | 300 500 700 | | 5 | 50 | 500
    A2  | 3 | 30%  | u 500 700 | | 4 | 60 | 600
    A3  | 3 | 30%  | 400 u u | | 3 | 40 | 400
    A4  | 2 | 30%  | 500 700 i f | | 4 | 60 | 600
    A5  | 5 | 50%  | 100 300 500 250 250 | | 3 | 28 | 280
    A6  | 5 | 50%  | 100 300 500 u u | | 2 | 30 | 300
    A7  | 5 | 50%  | 100 p p p p | | 1 | 10 | 100
    A8  | 5 | 50%  | 100 300 500 250 250 i i | | 3 | 28 | 280
    A9  | 3 | 100% | 1010 1030 1020 | req=900,1000,1100 | 3 | 102 | 1020
    A10 | 3 | 100% | 909 1010 1111 | req=900,1000,1100 up-tolerance=0 down-tolerance=0 | 4 | 101 | 1010
    A11 | 3 | 100% | 1890 1910 1900 | req=900,1000,1100 up-tolerance=2 | 3 | 190 | 1900
    A12 | 3 | 100% | 1100 1080 1090 | req=900,1000,1100 up-tolerance=0.08 down-tolerance=2 | 4 | 109 | 1090
    A13 | 3 | 100% | 660 640 650 | req=900,1000,1100 down-tolerance=0.36 | 3 | 65 | 650
    A14 | 3 | 100% | 660 640 650 | req=900,1000,1100 down-tolerance=0.34 | 2 | 65 | 650
    A15 | 4 | 100% | 4000 9500 3000 7000 x3200 x2000 | | 24 | 587 | 5875
    A16 | 4 | 100% | 400 95 m m | | 3 | 24 | 247
    A17 | 2 | 100% | 1000 m | | 2 | 100 | 1000
    A18 | 2 | 100% | 1900 m | | 2 | 190 | 1900
    A19 | 2 | 100% | 600 m | | 2 | 60 | 600
    A20 | 3 | 50%  | u 450 m | | 3 | 45 | 450
    A21 | 3 | 50%  | u 2000 m | | 4 | 200 | 2000
    A22 | 4 | 50%  | u 100 100 m | | 3 | 10 | 100
    A23 | 4 | 300% | u 100 100 m | req=1000,1000,2000,2000 | 2 | 6 | 100
    A24 | 4 | 50%  | 500 500 500 500 500 | st=5 | 4 | 50 | 500
    A25 | 2 | 50%  | 100 100 m | st=3 | 2 | 10 | 100
    A26 | 3 | 10%  | 100 200 300 | req=100,100,100 | 60 | 200 | 200
    A27 | 1 | 50%  | 200 | req=200 | 2 | 100 | 200
    A28 | 3 | 90%  | 8000 9500 1000 | req=900,1000,1100 | 21 | 616 | 6166
    A29 | 3 | 90%  | 10 95 10 | req=900,1000,1100 | 1 | 3 | 38
    A30 | 1 | 100% | m x200 | | NoOverlap | |
    A31 | 4 | 100% | m m m m | | NoSamples | |
    A32 | 1 | 100% | 200 | req=- | NoRequest | |
    A33 | 10 | 50% | 559 559 559 559 559 559 559 559 559 559 | | 10 | 55 | 559
    A34 | 3 | 80%memory | 210Mi 230Mi 240Mi | req=256Mi,256Mi,256Mi | 3 | 88 |
    A35 | 3 | 80%memory | 250Mi 250Mi 250Mi | req=256Mi,256Mi,256Mi | 4 | 97 |
    no pods | 3 | 50% | | | NoPods | |
    only pods that do not count | 3 | 50% | i p u | | NoSamples | |
    a request is asked of ignored pods too | 2 | 100% | 500 i | req=1000,- | NoRequest | |
    an unknown pod among the others | 2 | 100% | x9000 2000 x9000 2000 x9000 | | 4 | 200 | 2000
    unknown pods multiply what is assumed of missing ones | 3 | 50% | 2000 2000 m x100 | | 11 | 200 | 2000
    too much to say | 1 | 1% | max | req=1 | 2147483647 | 2147483647 | max
";

/// The same columns; the target is an average, of a metric of pods unless `cpu` stands behind it. `30000u` is
/// a pod that is not ready, which these metrics never ask.
pub(in crate::hpa) const AVERAGES: &str = "
    B1  | 3 | 15000 | 20000 10000 30000 | | 4 | 20000 |
    B2  | 3 | 15000 | 50000 10000 30000u | | 6 | 30000 |
    B3  | 3 | 15000 | 50000 15000u 30000u | | 7 | 31666 |
    B4  | 3 | 15000 | 30000 30000 p | | 4 | 30000 |
    B5  | 5 | 20000 | 12000 12000 12000 12000 12000 | | 3 | 12000 |
    B6  | 3 | 20000 | 20000 21000 21000 | | 3 | 20666 |
    B7  | 3 | 20000 | 20000 21000 21000 | up-tolerance=0.01 | 4 | 20666 |
    B8  | 5 | 20000 | 20000 19000 21000 m m | | 5 | 20000 |
    B9  | 5 | 20000 | 4000 4000 4000 m m | | 3 | 4000 |
    B10 | 4 | 10000 | 30000 30000 m m | | 6 | 30000 |
    B11 | 2 | 17000 | 10000 10000 m | st=3 | 2 | 10000 |
    B12 | 10 | 500cpu | 559 559 559 559 559 559 559 559 559 559 | | 12 | 559 |
    cpu asks who is ready, other metrics do not | 2 | 1000cpu | 5000 u | | 5 | 5000 |
    unknown pods count in averages | 2 | 1000 | 3000 3000 x0 | | 4 | 2000 |
    below zero is zero | 2 | 1000 | -3000 -3000 | | 0 | -3000 |
";

/// `id | current | usage | target | ready | settings | count`. `ready` of the current pods are; `+9i` that
/// many more on their way out but ready. Two usages are two series.
pub(in crate::hpa) const VALUES: &str = "
    C1  | 3 | 20000 | 15000 | 3 | | 4
    C2  | 3 | 50000 | 10000 | 1 | | 5
    C3  | 3 | 8600 | 4400 | 1 | | 2
    C4  | 5 | 12000 | 20000 | 5 | | 3
    C5  | 5 | 8600 | 14334 | 5 | | 3
    C6  | 3 | 20666 | 20000 | 3 | | 3
    C7  | 3 | 20666 | 20000 | 3 | up-tolerance=0.01 | 4
    C8  | 3 | 8600 | 6666 | 3 | | 4
    C9  | 0 | 20000 | 15000 | 0 | | 2
    C10 | 0 | 1000 | 1000 | 0 | | 1
    C11 | 5 | 0 | 20000 | 5 | | 0
    C12 | 3 | 100000 | 10000 | 0 | | 0
    C13 | 3 | max | 1 | 3 | | 2147483647
    C14 | 3 | half half | max | 3 | | 3
    C15 | 1 | 30 | 60 | 1+9i | | 5
    no series | 3 | | 10000 | 3 | | NoSeries
";

/// `id | present | usage | target | settings | count | average`.
pub(in crate::hpa) const TOTALS: &str = "
    D1  | 3 | 20000 | 5000 | | 4 | 6667
    D2  | 3 | 8600 | 2150 | | 4 | 2867
    D3  | 5 | 6000 | 2000 | | 3 | 1200
    D4  | 5 | 8600 | 2867 | | 3 | 1720
    D5  | 4 | 20166 | 5000 | | 4 | 5042
    D6  | 4 | 20208 | 5000 | up-tolerance=0.01 | 5 | 5052
    D7  | 3 | 8600 | 2900 | | 3 | 2867
    D8  | 3 | 8600 | 2800 | up-tolerance=0.01 | 4 | 2867
    D9  | 3 | 40000 | 10000 | | 4 | 13334
    D10 | 0 | 8600 | 2200 | | 4 | 0
    D11 | 5 of 4 | 20000 | 4200 | | 5 | 4000
    D12 | 1 | max | 1 | | 2147483647 | max
    nothing on nothing | 0 | 0 | 2200 | | 0 | 0
";

/// `id | current | target | use of each of as many pods | settings | count`: percent of 1000.
pub(in crate::hpa) const NUMERIC_TRAPS: &str = "
    N1 | 25 | 50% | 140 | | 8
    N2 | 42 | 70% | 450 | | 28
    N3 | 60 | 60% | 310 | | 32
    N4 | 25 | 80% | 1760 | | 56
    N8 | 10 | 50% | 550 | | 10
";

/// Pods and samples, from the words of a row.
struct Pods {
    list: Vec<HpaPod>,
    samples: Vec<PodSample>,
}

impl Pods {
    /// Ids leave room for unknown pods before, between and behind.
    fn read(text: &str, requests: Option<&str>) -> Self {
        let requests: Vec<&str> = requests.map(|list| list.split(',').collect()).unwrap_or_default();
        let mut read = Self { list: Vec::new(), samples: Vec::new() };
        for (number, token) in (1..).zip(text.split_whitespace()) {
            if let Some(value) = token.strip_prefix('x') {
                read.samples.push(sample(number * 2, milli(value)));
                continue;
            }
            let request = requests.get(read.list.len()).copied().unwrap_or("1000");
            let amount = (request != "-").then(|| milli(request));
            let mut pod = settled_pod(number * 2 + 1);
            pod.requests.containers = vec![requesting("app", amount.map(MilliValue::value), amount)];
            let value = shape(&mut pod, token);
            read.samples.extend(value.map(|value| sample(pod.pod.0, value)));
            read.list.push(pod);
        }
        // The order in which they are told decides nothing.
        read.list.reverse();
        let half = read.samples.len() / 2;
        read.samples.rotate_left(half);
        read
    }
}

/// Makes the pod what the token says; what it uses.
fn shape(pod: &mut HpaPod, token: &str) -> Option<MilliValue> {
    let would_matter = Some(MilliValue::new(77_777));
    match token {
        "m" => None,
        "i" => {
            pod.is_deleted = true;
            would_matter
        }
        "f" => {
            pod.phase = HpaPodPhase::Failed;
            would_matter
        }
        "p" => {
            pod.phase = HpaPodPhase::Pending;
            would_matter
        }
        "u" => {
            pod.ready = Some(ReadyCondition { status: ReadyStatus::False, since: ago("9994") });
            would_matter
        }
        number => {
            if number.ends_with('u') {
                pod.ready = Some(ReadyCondition { status: ReadyStatus::False, since: ago("9994") });
            }
            Some(milli(number.trim_end_matches('u')))
        }
    }
}

/// One pass over one metric; what that asks for.
fn ask(
    spec: &HpaSpec,
    scale: Scale,
    pods: Vec<HpaPod>,
    samples: MetricSamples,
) -> (MetricStatus, HpaOutcome) {
    let pods = HpaPods::new(pods);
    let observation = HpaObservation { scale, pods: &pods, samples: &[samples] };
    let mut state = state_at(spec, scale.replicas);
    let outcome = evaluate(spec, &observation, &mut state, NOW);
    assert_linked(state.reasons());
    (state.metrics()[0], outcome)
}

fn check_count(row: &[&str], expected: &str, status: MetricStatus, outcome: HpaOutcome) -> Option<Proposal> {
    match status {
        MetricStatus::Proposed(proposal) => {
            assert_eq!(proposal.count.to_string(), expected, "{row:?}: {proposal:?}");
            assert_eq!(outcome.raw, Some(proposal.count), "{row:?}");
            Some(proposal)
        }
        MetricStatus::Failed { why, .. } => {
            assert_eq!(format!("{why:?}"), expected, "{row:?}");
            assert_eq!(outcome.cause, RescaleCause::Abandoned, "{row:?}");
            None
        }
        MetricStatus::NotAsked => panic!("{row:?}"),
    }
}

fn check_per_pod(row: &[&str]) {
    let [_, current, target, pod_words, words, count, reported, average] = row else { panic!("{row:?}") };
    let metric = match (target.split_once('%'), target.strip_suffix("cpu")) {
        (Some((percent, "memory")), _) => MetricSpec::Resource {
            resource: ResourceName::Memory,
            container: None,
            target: ResourceTarget::Utilization(percent.parse().unwrap()),
        },
        (Some((percent, _)), _) => cpu(ResourceTarget::Utilization(percent.parse().unwrap())),
        (None, Some(target)) => cpu(ResourceTarget::AverageValue(milli(target))),
        (None, None) => MetricSpec::Pods {
            metric: MetricIdentifier { name: "packets".into(), selector: LabelSelector::default() },
            target: milli(target),
        },
    };
    let spec = spec_of(metric, words);
    let read = Pods::read(pod_words, word(words, "req"));
    let present = word(words, "st").map_or(pods(current), pods);
    let samples = MetricSamples::PerPod(PodSamples::new(read.samples));
    let (status, outcome) = ask(&spec, scale(pods(current), present), read.list, samples);
    let Some(proposal) = check_count(row, count, status, outcome) else { return };
    match proposal.current {
        CurrentValue::Utilization { percent, average: measured } => {
            assert_eq!(percent.to_string(), *reported, "{row:?}");
            assert!(average.is_empty() || measured == milli(average), "{row:?}: {measured}");
        }
        CurrentValue::AverageValue(measured) => assert_eq!(measured, milli(reported), "{row:?}"),
        CurrentValue::Value(_) => panic!("{row:?}"),
    }
}

#[test]
fn utilizations_and_averages_are_those_of_the_reference() {
    for row in rows(UTILIZATION).iter().chain(&rows(AVERAGES)) {
        check_per_pod(row);
    }
}

#[test]
fn values_are_those_of_the_reference() {
    for row in rows(VALUES) {
        let [_, current, usage, target, ready, words, count] = row[..] else { panic!("{row:?}") };
        let (ready, leaving) = ready.split_once('+').unwrap_or((ready, "0i"));
        let mut list: Vec<HpaPod> = (0..pods(current).value()).map(settled_pod).collect();
        for pod in list.iter_mut().skip(ready.parse().unwrap()) {
            pod.ready = Some(ReadyCondition { status: ReadyStatus::False, since: ago("100") });
        }
        let leaving = pods(leaving.trim_end_matches('i')).value();
        list.extend((100..100 + leaving).map(|number| HpaPod { is_deleted: true, ..settled_pod(number) }));
        let spec = spec_of(backlog(TotalTarget::Value(milli(target))), words);
        let series = MetricSamples::Series(usage.split_whitespace().map(milli).collect());
        let (status, outcome) = ask(&spec, scale(pods(current), pods(current)), list, series);
        check_count(&row, count, status, outcome);
    }
}

#[test]
fn totals_are_those_of_the_reference() {
    for row in rows(TOTALS) {
        let [_, present, usage, target, words, count, average] = row[..] else { panic!("{row:?}") };
        let (present, current) = present.split_once(" of ").unwrap_or((present, present));
        let spec = spec_of(backlog(TotalTarget::AverageValue(milli(target))), words);
        let series = MetricSamples::Series(vec![milli(usage)]);
        let (status, outcome) = ask(&spec, scale(pods(current), pods(present)), Vec::new(), series);
        let proposal = check_count(&row, count, status, outcome).unwrap();
        assert_eq!(proposal.current, CurrentValue::AverageValue(milli(average)), "{row:?}");
    }
}

#[test]
fn doubles_round_as_in_the_reference() {
    for row in rows(NUMERIC_TRAPS) {
        let [_, current, target, each, words, count] = row[..] else { panic!("{row:?}") };
        let number = current.parse().unwrap();
        let list = vec![each; number].join(" ");
        let spec =
            spec_of(cpu(ResourceTarget::Utilization(target.trim_end_matches('%').parse().unwrap())), words);
        let read = Pods::read(&list, None);
        let samples = MetricSamples::PerPod(PodSamples::new(read.samples));
        let (status, outcome) = ask(&spec, scale(pods(current), pods(current)), read.list, samples);
        check_count(&row, count, status, outcome);
    }
}

#[test]
fn an_object_has_exactly_one_value() {
    let described = ObjectReference { api_version: "v1".into(), kind: "Service".into(), name: "shop".into() };
    let metric = MetricIdentifier { name: "hits".into(), selector: LabelSelector::default() };
    let target = TotalTarget::AverageValue(MilliValue::new(5000));
    let spec = spec_of(MetricSpec::Object { described, metric, target }, "");
    let three = PodCount::new(3);
    let ask = |series: Vec<i64>| {
        let series = MetricSamples::Series(series.into_iter().map(MilliValue::new).collect());
        ask(&spec, scale(three, three), Vec::new(), series).0
    };
    assert!(
        matches!(ask(vec![20_000]), MetricStatus::Proposed(proposal) if proposal.count == PodCount::new(4))
    );
    for series in [vec![], vec![20_000, 20_000]] {
        assert_eq!(
            ask(series),
            MetricStatus::Failed {
                reason: ConditionReason::FailedGetObjectMetric,
                why: NoProposal::NoSeries
            }
        );
    }
}
