//! How long does something take: the work for a request, or the start of a pod?
//!
//! | text | meaning |
//! |---|---|
//! | `120ms` | always the same |
//! | `2s..5s` | each time of the range is equally likely |
//! | `120ms,p99=800ms` | log-normal: half of all take at most 120 ms, 99 of 100 at most 800 ms; `p90` and `p95` too |
//! | `exponential,mean=120ms` | exponential |
//! | `percentiles,min=5ms,p50=80ms,p99=900ms,max=2s` | measured percentiles, with straight lines between |

use std::sync::Arc;
use std::time::Duration;

use vocabulary::did_you_mean;

use crate::option_text::{OptionKey, OptionProblem, OptionText, span, span_above_zero};
use crate::random::{RandomStream, span_of};
use crate::rounding::real;

/// A distribution of spans of time.
#[derive(Clone, Debug, PartialEq)]
pub enum TimeDistribution {
    /// The same span each time.
    Constant(Duration),
    /// Each span of the range is equally likely.
    Uniform {
        /// The shortest span of the range.
        least: Duration,
        /// The longest span, no shorter than the shortest.
        most: Duration,
    },
    /// Exponential, as of work without memory.
    Exponential {
        /// The mean of all spans.
        mean: Duration,
    },
    /// The logarithm of the span is normal.
    LogNormal {
        /// Half of all spans are at most this long.
        median: Duration,
        /// The standard deviation of the logarithm.
        sigma: f64,
    },
    /// Between two measured percentiles each span is equally likely.
    Percentiles(PercentileTable),
    /// Each of these spans, which were measured, is equally likely; without any it is no time.
    Measured(Arc<[Duration]>),
}

/// Percentiles from the shortest span to the longest.
#[derive(Clone, Debug, PartialEq)]
pub struct PercentileTable {
    points: Vec<PercentilePoint>,
}

/// One percentile of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PercentilePoint {
    /// The share of spans that are at most as long, from 0 to 1.
    share: f64,
    seconds: f64,
}

/// The percentiles that a log-normal distribution may be given by, each with how many standard deviations
/// above the mean it lies in the normal distribution.
const NORMAL_QUANTILES: [(&str, f64); 3] =
    [("p90", 1.281_551_565_544_600_4), ("p95", 1.644_853_626_951_472_2), ("p99", 2.326_347_874_040_840_8)];

/// The keys of a table, each with its share.
const TABLE_SHARES: [(&str, f64); 12] = [
    ("min", 0.0),
    ("p1", 0.01),
    ("p5", 0.05),
    ("p10", 0.1),
    ("p25", 0.25),
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("max", 1.0),
];

const MEAN: OptionKey<Duration> = OptionKey { name: "mean", example: "120ms", reader: span_above_zero };
const FORMS: &str = "is no time; write 120ms, 2s..5s, 120ms,p99=800ms, exponential,mean=120ms or percentiles,min=5ms,p50=80ms,max=2s";
const WORDS: [&str; 2] = ["exponential", "percentiles"];

impl TimeDistribution {
    /// Reads the text of an option; the table above shows its forms.
    pub fn parse(text: &str) -> Result<Self, OptionProblem> {
        let option = OptionText::read(text)?;
        match option.head() {
            None | Some("") => Err(OptionProblem::unusable("the time", text, FORMS)),
            Some("exponential") => {
                option.check_keys(&[MEAN.name])?;
                Ok(Self::Exponential { mean: option.required(&MEAN)? })
            }
            Some("percentiles") => percentiles(&option).map(Self::Percentiles),
            Some(head) => match head.split_once("..") {
                Some((least, most)) => {
                    option.check_keys(&[])?;
                    range(head, least, most)
                }
                None => constant_or_log_normal(head, &option),
            },
        }
    }

    /// The mean of all spans, in seconds.
    pub(crate) fn mean(&self) -> f64 {
        match self {
            Self::Constant(span) => span.as_secs_f64(),
            Self::Uniform { least, most } => f64::midpoint(least.as_secs_f64(), most.as_secs_f64()),
            Self::Exponential { mean } => mean.as_secs_f64(),
            Self::LogNormal { median, sigma } => median.as_secs_f64() * libm::exp(sigma * sigma / 2.0),
            Self::Percentiles(table) => table.mean(),
            Self::Measured(spans) => {
                let sum: f64 = spans.iter().map(Duration::as_secs_f64).sum();
                sum / real(u64::try_from(spans.len().max(1)).unwrap_or(u64::MAX))
            }
        }
    }

    /// One span of the distribution.
    pub(crate) fn draw(&self, random: &mut RandomStream) -> Duration {
        match self {
            Self::Constant(span) => *span,
            Self::Uniform { least, most } => span_of(random.uniform(least.as_secs_f64(), most.as_secs_f64())),
            Self::Exponential { mean } => span_of(random.exponential(mean.as_secs_f64())),
            Self::LogNormal { median, sigma } => span_of(random.log_normal(median.as_secs_f64(), *sigma)),
            Self::Percentiles(table) => span_of(table.seconds_at(random.unit())),
            Self::Measured(spans) => spans.get(random.index(spans.len())).copied().unwrap_or_default(),
        }
    }
}

impl PercentileTable {
    fn mean(&self) -> f64 {
        let parts = self
            .points
            .windows(2)
            .map(|pair| (pair[1].share - pair[0].share) * f64::midpoint(pair[0].seconds, pair[1].seconds));
        parts.sum()
    }

    /// The span that this share of all spans does not exceed; the share is below 1.
    fn seconds_at(&self, share: f64) -> f64 {
        // The first point has the share 0 and the last one 1, so there is one on each side.
        let above = self.points.partition_point(|point| point.share <= share);
        let (low, high) = (self.points[above - 1], self.points[above]);
        let part = (share - low.share) / (high.share - low.share);
        low.seconds + (high.seconds - low.seconds) * part
    }
}

fn range(text: &str, least: &str, most: &str) -> Result<TimeDistribution, OptionProblem> {
    let read =
        |part: &str| span(part).map_err(|flaw| OptionProblem::unusable("an end of the range", part, &flaw));
    let (least, most) = (read(least)?, read(most)?);
    if least > most {
        return Err(OptionProblem::unusable("the range", text, "ends before it begins; write 2s..5s"));
    }
    Ok(TimeDistribution::Uniform { least, most })
}

fn constant_or_log_normal(head: &str, option: &OptionText<'_>) -> Result<TimeDistribution, OptionProblem> {
    let is_word = head.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let flaw = |flaw: String| {
        let advice = if is_word { format!("{FORMS}{}", did_you_mean(head, WORDS)) } else { flaw };
        OptionProblem::unusable("the time", head, &advice)
    };
    let median = span(head).map_err(flaw)?;
    option.check_keys(&NORMAL_QUANTILES.map(|(name, _)| name))?;
    let mut sigma = None;
    for (name, deviations) in NORMAL_QUANTILES {
        let key = OptionKey { name, example: "800ms", reader: span };
        let Some(quantile) = option.optional(&key)? else { continue };
        let written = vocabulary::format_duration(quantile);
        if sigma.is_some() {
            let flaw = "is a second percentile; one says all, and several are a table: percentiles,min=…,p50=…,max=…";
            return Err(OptionProblem::unusable(name, &written, flaw));
        }
        if quantile <= median || median.is_zero() {
            let flaw = "is not above the median that stands first";
            return Err(OptionProblem::unusable(name, &written, flaw));
        }
        sigma = Some(libm::log(quantile.as_secs_f64() / median.as_secs_f64()) / deviations);
    }
    Ok(match sigma {
        Some(sigma) => TimeDistribution::LogNormal { median, sigma },
        None => TimeDistribution::Constant(median),
    })
}

fn percentiles(option: &OptionText<'_>) -> Result<PercentileTable, OptionProblem> {
    option.check_keys(&TABLE_SHARES.map(|(name, _)| name))?;
    let mut points: Vec<PercentilePoint> = Vec::new();
    for (name, share) in TABLE_SHARES {
        let key = OptionKey { name, example: "1s", reader: span };
        // Both ends are needed: what lies beyond the outermost percentile is not known by any other.
        let is_end = share == 0.0 || share == 1.0;
        let value = if is_end { Some(option.required(&key)?) } else { option.optional(&key)? };
        let Some(value) = value else { continue };
        let seconds = value.as_secs_f64();
        if points.last().is_some_and(|before| before.seconds > seconds) {
            let written = vocabulary::format_duration(value);
            return Err(OptionProblem::unusable(name, &written, "is below a smaller percentile"));
        }
        points.push(PercentilePoint { share, seconds });
    }
    Ok(PercentileTable { points })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 400_000;

    fn drawn(text: &str) -> Vec<f64> {
        let distribution = TimeDistribution::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let mut random = RandomStream::of(7, "hello", "service-time");
        let mut spans: Vec<f64> = (0..DRAWS).map(|_| distribution.draw(&mut random).as_secs_f64()).collect();
        spans.sort_by(f64::total_cmp);
        spans
    }

    fn assert_near(found: f64, expected: f64, what: &str) {
        assert!((found - expected).abs() < 0.02 * expected, "{what}: {found}, not {expected}");
    }

    #[test]
    fn each_form_has_its_percentiles() {
        assert!(drawn("120ms").iter().all(|span| *span == 0.12));
        let range = drawn("2s..5s");
        assert!(range[0] >= 2.0 && range[DRAWS - 1] < 5.0);
        assert_near(range[DRAWS / 2], 3.5, "the median of a range");
        let log_normal = drawn("120ms,p99=800ms");
        assert_near(log_normal[DRAWS / 2], 0.12, "the median of a log-normal distribution");
        assert_near(log_normal[DRAWS / 100 * 99], 0.8, "its 99th percentile");
        let exponential = drawn("exponential,mean=120ms");
        assert_near(exponential[DRAWS / 2], 0.12 * libm::log(2.0), "the median of an exponential one");
        let table = drawn("percentiles,min=5ms,p50=80ms,p99=900ms,max=2s");
        assert_near(table[DRAWS / 2], 0.08, "the median of a table");
        assert_near(table[DRAWS / 4], 0.0425, "a quarter, halfway from the shortest to the median");
        assert!(table[0] >= 0.005 && table[DRAWS - 1] <= 2.0);
    }

    #[test]
    fn each_form_has_its_mean() {
        let texts = ["120ms", "2s..5s", "120ms,p99=800ms", "exponential,mean=120ms"];
        for text in texts.into_iter().chain(["percentiles,min=5ms,p50=80ms,p99=900ms,max=2s"]) {
            let sum: f64 = drawn(text).iter().sum();
            let count = f64::from(u32::try_from(DRAWS).expect("few"));
            let mean = TimeDistribution::parse(text).map(|distribution| distribution.mean());
            assert_near(sum / count, mean.expect("a time"), text);
        }
    }

    #[test]
    fn measured_spans_come_again() {
        let spans: Arc<[Duration]> = [1, 2, 6].map(Duration::from_secs).into();
        let measured = TimeDistribution::Measured(Arc::clone(&spans));
        assert_near(measured.mean(), 3.0, "the mean of three");
        let mut random = RandomStream::of(7, "hello", "start-up");
        let drawn: Vec<Duration> = (0..1_000).map(|_| measured.draw(&mut random)).collect();
        assert!(drawn.iter().all(|span| spans.contains(span)));
        assert!(spans.iter().all(|span| drawn.iter().filter(|other| *other == span).count() > 250));
        assert_eq!(TimeDistribution::Measured(Arc::new([])).draw(&mut random), Duration::ZERO);
    }

    #[test]
    fn an_error_says_what_is_allowed() {
        for (text, part) in [
            ("", "is no time; write 120ms"),
            ("120", "write \"120s\""),
            ("exponental,mean=1s", "did you mean exponential?"),
            ("exponential", "mean is missing; write mean=120ms"),
            ("exponential,mean=0s", "is no time at all"),
            ("5s..2s", "ends before it begins"),
            ("2s..x", "an end of the range is \"x\""),
            ("120ms,p99=100ms", "is not above the median"),
            ("120ms,p90=1s,p99=2s", "is a second percentile"),
            ("120ms,p98=1s", "\"p98\" is no key here"),
            ("percentiles,p50=80ms,max=2s", "min is missing"),
            ("percentiles,min=5ms,p50=80ms,p90=70ms,max=2s", "p90 is \"70ms\", which is below"),
        ] {
            let error = TimeDistribution::parse(text).expect_err(text).to_string();
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }
}
