//! Which load does a person describe, in one option per Service?
//!
//! | text behind `--load NAME=` | load |
//! |---|---|
//! | `constant,rate=50rps` | Poisson arrivals at one rate |
//! | `step,from=5rps,to=50rps,at=5m` | another rate from a moment on |
//! | `ramp,from=5rps,to=50rps,over=10m` | a rate that changes evenly, then stays |
//! | `diurnal,peak=200rps,trough=10rps` | a cosine over a day, or over `period=2h`; it begins at the trough |
//! | `weekly,peak=200rps,trough=10rps,weekend=40rps` | days whose last two of seven have another peak |
//! | `bursty,burst=300rps,every=10m,length=20s` | bursts at random times, over `rate=5rps` if that is given |
//! | `timer,every=5m,requests=20` | so many requests at once, at a fixed interval |
//! | `sparse,every=10m` | rare requests at random times, or groups of `requests=3` on average |
//! | `azure` | that of one Service of a fleet, as Azure Functions had it, at most `most=50rps` if that is given |
//! | `clients=50` | clients that wait for each answer, and for `pause=1s` if that is given |
//! | `requests.csv` | what stands in that file: a name with a dot or a slash, which no shape has |

use std::time::Duration;

use thiserror::Error;
use vocabulary::{RequestRate, shown};

use crate::load_file::LoadFile;
use crate::measured_load::MeasuredLoad;
use crate::option_text::{
    OptionKey, OptionProblem, OptionText, count, rate, rate_above_zero, span, span_above_zero,
};
use crate::rate_curve::{DAY, RateCurve};

/// How requests for one Service arrive.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadShape {
    /// At random, at a rate that depends on the time alone.
    Curve(RateCurve),
    /// At random, with bursts that begin at random.
    Bursty {
        /// The rate between bursts; zero for none.
        rate: RequestRate,
        /// The rate within a burst.
        burst: RequestRate,
        /// The mean time from the end of a burst to the beginning of the next.
        every: Duration,
        /// How long each burst lasts.
        length: Duration,
    },
    /// So many at once, at a fixed interval.
    Timer {
        /// The time from one to the next, and to the first.
        every: Duration,
        /// How many requests come at once.
        requests: u32,
    },
    /// Rare requests or groups of requests, at random times.
    Sparse {
        /// The mean time from one group to the next.
        every: Duration,
        /// The mean size of a group, at least one.
        requests: u32,
    },
    /// As one Service of a fleet has it, whose rate and shape follow from the seed and the name of the
    /// Service.
    Fleet {
        /// The greatest mean rate of a Service; `None` for that of the fleet.
        most: Option<RequestRate>,
    },
    /// From clients that wait for each answer before they ask again.
    Clients {
        /// The number of clients, at least one.
        clients: u32,
        /// How long a client waits after an answer.
        pause: Duration,
    },
    /// As the lines of a file say.
    File(LoadFile),
    /// As a run was that is in a record.
    Measured(MeasuredLoad),
}

/// The load of one Service, as an option names it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceLoad {
    /// The name of the Service, or an unambiguous end of `namespace/service/name`, or `*` for each Service
    /// that no other load names.
    pub service: String,
    /// Where it is said how requests for the Service arrive.
    pub source: LoadSource,
}

/// Where it is said how requests arrive.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadSource {
    /// By the words of the option.
    Shape(LoadShape),
    /// By the file of this name, which the caller reads.
    File(String),
}

/// Why the text of a load cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ServiceLoadProblem {
    /// No name of a Service stands in front.
    #[error("{} names no Service; write NAME=SHAPE, such as hello=constant,rate=50rps", shown(.0))]
    NoService(String),
    /// The part behind the name cannot be used.
    #[error("load of {service}: {problem}")]
    Shape {
        /// The name that stands in front.
        service: String,
        /// The problem of the part behind it.
        problem: OptionProblem,
    },
}

impl ServiceLoad {
    /// Reads the text of an option; the table above shows its forms.
    pub fn parse(text: &str) -> Result<Self, ServiceLoadProblem> {
        let named = text.split_once('=').map(|(service, shape)| (service.trim(), shape));
        match named.filter(|(service, _)| !service.is_empty() && !service.contains(',')) {
            Some((service, words)) => match LoadSource::parse(words.trim()) {
                Ok(source) => Ok(Self { service: service.to_owned(), source }),
                Err(problem) => Err(ServiceLoadProblem::Shape { service: service.to_owned(), problem }),
            },
            None => Err(ServiceLoadProblem::NoService(text.to_owned())),
        }
    }
}

impl LoadSource {
    fn parse(text: &str) -> Result<Self, OptionProblem> {
        let first = text.split(',').next().unwrap_or_default();
        if first.contains(['.', '/']) && !first.contains('=') {
            return Ok(Self::File(text.to_owned()));
        }
        LoadShape::parse(text).map(Self::Shape)
    }
}

const SHAPES: [&str; 11] = [
    "constant",
    "step",
    "ramp",
    "diurnal",
    "weekly",
    "bursty",
    "timer",
    "sparse",
    "azure",
    "clients=50",
    "requests.csv",
];

const CLIENTS: OptionKey<u32> = OptionKey { name: "clients", example: "50", reader: count };
const PAUSE: OptionKey<Duration> = OptionKey { name: "pause", example: "1s", reader: span };
const RATE: OptionKey<RequestRate> = OptionKey { name: "rate", example: "50rps", reader: rate_above_zero };
const RATE_OR_NONE: OptionKey<RequestRate> = OptionKey { name: "rate", example: "5rps", reader: rate };
const FROM: OptionKey<RequestRate> = OptionKey { name: "from", example: "5rps", reader: rate };
const TO: OptionKey<RequestRate> = OptionKey { name: "to", example: "50rps", reader: rate };
const AT: OptionKey<Duration> = OptionKey { name: "at", example: "5m", reader: span_above_zero };
const OVER: OptionKey<Duration> = OptionKey { name: "over", example: "10m", reader: span_above_zero };
const PEAK: OptionKey<RequestRate> = OptionKey { name: "peak", example: "200rps", reader: rate_above_zero };
const TROUGH: OptionKey<RequestRate> = OptionKey { name: "trough", example: "10rps", reader: rate };
const WEEKEND: OptionKey<RequestRate> = OptionKey { name: "weekend", example: "40rps", reader: rate };
const PERIOD: OptionKey<Duration> = OptionKey { name: "period", example: "24h", reader: span_above_zero };
const BURST: OptionKey<RequestRate> = OptionKey { name: "burst", example: "300rps", reader: rate_above_zero };
const EVERY: OptionKey<Duration> = OptionKey { name: "every", example: "10m", reader: span_above_zero };
const LENGTH: OptionKey<Duration> = OptionKey { name: "length", example: "20s", reader: span_above_zero };
const MOST: OptionKey<RequestRate> = OptionKey { name: "most", example: "50rps", reader: rate_above_zero };
const REQUESTS: OptionKey<u32> = OptionKey { name: "requests", example: "20", reader: count };

impl LoadShape {
    /// Reads what stands behind the name of the Service.
    fn parse(text: &str) -> Result<Self, OptionProblem> {
        let option = OptionText::read(text)?;
        match option.head() {
            None => clients(&option),
            Some("constant") => {
                option.check_keys(&[RATE.name])?;
                Ok(Self::Curve(RateCurve::Constant { rate: option.required(&RATE)?.value() }))
            }
            Some("step") => step(&option).map(Self::Curve),
            Some("ramp") => ramp(&option).map(Self::Curve),
            Some("diurnal") => diurnal(&option).map(Self::Curve),
            Some("weekly") => weekly(&option).map(Self::Curve),
            Some("bursty") => bursty(&option),
            Some("timer") => {
                option.check_keys(&[EVERY.name, REQUESTS.name])?;
                let requests = option.optional(&REQUESTS)?.unwrap_or(1);
                Ok(Self::Timer { every: option.required(&EVERY)?, requests })
            }
            Some("sparse") => {
                option.check_keys(&[EVERY.name, REQUESTS.name])?;
                let requests = option.optional(&REQUESTS)?.unwrap_or(1);
                Ok(Self::Sparse { every: option.required(&EVERY)?, requests })
            }
            Some("azure") => {
                option.check_keys(&[MOST.name])?;
                Ok(Self::Fleet { most: option.optional(&MOST)? })
            }
            Some(unknown) => Err(OptionProblem::unknown_word(unknown, &SHAPES)),
        }
    }
}

fn clients(option: &OptionText<'_>) -> Result<LoadShape, OptionProblem> {
    option.check_keys(&[CLIENTS.name, PAUSE.name])?;
    let pause = option.optional(&PAUSE)?.unwrap_or_default();
    Ok(LoadShape::Clients { clients: option.required(&CLIENTS)?, pause })
}

fn step(option: &OptionText<'_>) -> Result<RateCurve, OptionProblem> {
    option.check_keys(&[FROM.name, TO.name, AT.name])?;
    let (from, to) = (option.required(&FROM)?.value(), option.required(&TO)?.value());
    Ok(RateCurve::Step { from, to, at: option.required(&AT)?.as_secs_f64() })
}

fn ramp(option: &OptionText<'_>) -> Result<RateCurve, OptionProblem> {
    option.check_keys(&[FROM.name, TO.name, OVER.name])?;
    let (from, to) = (option.required(&FROM)?.value(), option.required(&TO)?.value());
    Ok(RateCurve::Ramp { from, to, over: option.required(&OVER)?.as_secs_f64() })
}

fn diurnal(option: &OptionText<'_>) -> Result<RateCurve, OptionProblem> {
    option.check_keys(&[PEAK.name, TROUGH.name, PERIOD.name])?;
    let (peak, trough) = peak_and_trough(option)?;
    let period = option.optional(&PERIOD)?.map_or(DAY, |period| period.as_secs_f64());
    Ok(RateCurve::Cycle { peak, trough, period })
}

fn weekly(option: &OptionText<'_>) -> Result<RateCurve, OptionProblem> {
    option.check_keys(&[PEAK.name, TROUGH.name, WEEKEND.name])?;
    let (peak, trough) = peak_and_trough(option)?;
    Ok(RateCurve::Week { peak, trough, weekend: option.required(&WEEKEND)?.value() })
}

fn peak_and_trough(option: &OptionText<'_>) -> Result<(f64, f64), OptionProblem> {
    let (peak, trough) = (option.required(&PEAK)?.value(), option.required(&TROUGH)?.value());
    if trough > peak {
        let flaw = format!("is above the peak of {peak} requests per second");
        return Err(OptionProblem::unusable(TROUGH.name, &format!("{trough}rps"), &flaw));
    }
    Ok((peak, trough))
}

fn bursty(option: &OptionText<'_>) -> Result<LoadShape, OptionProblem> {
    option.check_keys(&[RATE.name, BURST.name, EVERY.name, LENGTH.name])?;
    Ok(LoadShape::Bursty {
        rate: option.optional(&RATE_OR_NONE)?.unwrap_or(RequestRate::ZERO),
        burst: option.required(&BURST)?,
        every: option.required(&EVERY)?,
        length: option.required(&LENGTH)?,
    })
}

#[cfg(test)]
impl LoadShape {
    /// The shape of a whole option, which names no file.
    pub(crate) fn of_option(text: &str) -> Self {
        match ServiceLoad::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).source {
            LoadSource::Shape(shape) => shape,
            LoadSource::File(name) => panic!("{name} is a file"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> LoadShape {
        LoadShape::of_option(text)
    }

    #[test]
    fn a_name_with_a_dot_or_a_slash_is_a_file() {
        for name in ["requests.csv", "./day 1.csv.gz", "/srv/requests"] {
            let load = ServiceLoad::parse(&format!("hello={name}")).expect(name);
            assert_eq!(load.source, LoadSource::File(name.to_owned()));
        }
        assert!(matches!(shape("hello=constant,rate=1.5rps"), LoadShape::Curve(_)));
    }

    #[test]
    fn every_shape_is_read() {
        assert_eq!(shape("hello=constant,rate=50rps"), LoadShape::Curve(RateCurve::Constant { rate: 50.0 }));
        let step = RateCurve::Step { from: 5.0, to: 50.0, at: 300.0 };
        assert_eq!(shape("hello=step,from=5rps,to=50rps,at=5m"), LoadShape::Curve(step));
        let ramp = RateCurve::Ramp { from: 0.0, to: 50.0, over: 600.0 };
        assert_eq!(shape("hello=ramp,from=0rps,to=50rps,over=10m"), LoadShape::Curve(ramp));
        let day = RateCurve::Cycle { peak: 200.0, trough: 10.0, period: DAY };
        assert_eq!(shape("hello=diurnal,peak=200rps,trough=10rps"), LoadShape::Curve(day));
        let week = RateCurve::Week { peak: 200.0, trough: 10.0, weekend: 40.0 };
        assert_eq!(shape("hello=weekly,peak=200rps,trough=10rps,weekend=40rps"), LoadShape::Curve(week));
        assert!(matches!(shape("hello=bursty,burst=300rps,every=10m,length=20s"), LoadShape::Bursty { .. }));
        let timer = LoadShape::Timer { every: Duration::from_secs(300), requests: 20 };
        assert_eq!(shape("hello=timer,every=5m,requests=20"), timer);
        let sparse = LoadShape::Sparse { every: Duration::from_secs(600), requests: 1 };
        assert_eq!(shape("hello=sparse,every=10m"), sparse);
        assert_eq!(shape("hello=azure"), LoadShape::Fleet { most: None });
        let most = RequestRate::new(50.0).ok();
        assert_eq!(shape("*=azure,most=50rps"), LoadShape::Fleet { most });
        let clients = LoadShape::Clients { clients: 50, pause: Duration::ZERO };
        assert_eq!(shape("hello=clients=50"), clients);
    }

    #[test]
    fn an_error_names_load_word_value_and_what_is_allowed() {
        for (text, expected) in [
            ("constant,rate=50rps", "\"constant,rate=50rps\" names no Service; write NAME=SHAPE"),
            ("hello", "\"hello\" names no Service"),
            ("hello=constnt,rate=50rps", "load of hello: \"constnt\" is none of constant, step"),
            ("hello=constnt,rate=50rps", "did you mean constant?"),
            (
                "hello=constant,rat=50rps",
                "load of hello: \"rat\" is no key here; write rate; did you mean rate?",
            ),
            ("hello=constant", "load of hello: rate is missing; write rate=50rps"),
            ("hello=constant,rate=0rps", "rate is \"0rps\", which must be above zero"),
            ("hello=diurnal,peak=1rps,trough=2rps", "trough is \"2rps\", which is above the peak of 1"),
            ("hello=clients=0", "clients is \"0\", which must be a whole number"),
            ("hello=rate=50rps", "\"rate\" is no key here; write clients, pause"),
        ] {
            let error = ServiceLoad::parse(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
