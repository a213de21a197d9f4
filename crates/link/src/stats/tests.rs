//! Bytes of Knative's programs, from the vectors of its autoscaler.

use proptest::prelude::*;

use super::*;

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits: Vec<u32> =
        hexadecimal.chars().map(|digit| digit.to_digit(16).expect("a hexadecimal digit")).collect();
    digits.chunks(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).expect("a byte")).collect()
}

fn load(concurrency: f64, rate: f64) -> Load {
    Load {
        concurrency: Concurrency::new(concurrency).expect("a number"),
        request_rate: RequestRate::new(rate).expect("a number"),
        ..Load::default()
    }
}

const N6: &str = "0a370a0764656661756c74120b68656c6c6f2d30303030311a1f0a0b616374697661746f722d3111000000000000f03f21000000000000f03f";
const N7: &str = "0a3d0a0764656661756c74120b68656c6c6f2d30303030311a250a0b616374697661746f722d3111000000000000f03f21000000000000f03f3880e2cfaa06";
const N8: &str = "0a1a68656c6c6f2d30303030312d6465706c6f796d656e742d616263110000000000000c4019000000000000f43f210000000000001c40290000000000000040310000000000c04e40";

#[test]
fn a_push_is_read_with_and_without_a_time() {
    for vector in [N6, N7] {
        let reports = read_stat_frame(&bytes(vector)).expect("a frame");
        let report = StatReport {
            revision: RevisionName::new("default", "revision", "hello-00001").expect("a name"),
            reporter: "activator-1".to_owned(),
            load: load(1.0, 1.0),
        };
        assert_eq!(reports, [report], "{vector}");
    }
}

#[test]
fn a_scrapes_answer_is_a_bare_stat() {
    let scraped = read_scrape(&bytes(N8)).expect("a stat");
    assert_eq!((scraped.reporter.as_str(), scraped.process_uptime), ("hello-00001-deployment-abc", 61.5));
    assert_eq!((scraped.load.concurrency.value(), scraped.load.proxied_concurrency.value()), (3.5, 1.25));
    assert_eq!((scraped.load.request_rate.value(), scraped.load.proxied_request_rate.value()), (7.0, 2.0));
    let idle = read_scrape(&[]).expect("a stat whose fields are all zero takes no byte");
    assert!(idle.load.is_zero());
}

#[test]
fn a_frame_names_many_revisions_and_entries_without_a_stat_are_skipped() {
    let entry =
        |name: &str, stat| WireStatMessage { namespace: "default".to_owned(), name: name.to_owned(), stat };
    let stat = WireStat { pod_name: "a".to_owned(), average_concurrent_requests: 2.0, ..WireStat::default() };
    let frame = WireStatMessages { messages: vec![entry("one", Some(stat)), entry("two", None)] };
    let reports = read_stat_frame(&frame.encode_to_vec()).expect("a frame");
    let names: Vec<&str> = reports.iter().map(|report| report.revision.name()).collect();
    assert_eq!(names, ["one"]);
}

#[test]
fn values_that_are_no_load_are_refused_by_name() {
    for (value, field) in [(f64::NAN, "request_count"), (-1.0, "request_count")] {
        let stat = WireStat { request_count: value, ..WireStat::default() };
        let refused = read_scrape(&stat.encode_to_vec()).expect_err("no load").to_string();
        assert!(refused.starts_with(field), "{refused}");
    }
    let nameless = WireStatMessages {
        messages: vec![WireStatMessage { stat: Some(WireStat::default()), ..WireStatMessage::default() }],
    };
    let refused = read_stat_frame(&nameless.encode_to_vec()).expect_err("no name").to_string();
    assert!(refused.starts_with("name"), "{refused}");
    assert!(read_scrape(&[0; SCRAPE_BYTES_MAX + 1]).is_err());
}

proptest! {
    #[test]
    fn no_bytes_of_a_stranger_end_the_reader(frame in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_stat_frame(&frame);
        let _ = read_scrape(&frame);
    }
}
