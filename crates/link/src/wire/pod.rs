//! A queue-proxy's messages, to the wire and back.

use std::sync::Arc;
use std::time::Duration;

use vocabulary::{
    AdoptionId, Concurrency, Departure, LateTimeout, Load, PodHello, PodSettings, PodWord, RequestRate,
    Sample,
};

use super::{WireError, fields, measures, proto};
use crate::PodOrder;
use crate::history::History;

impl From<&PodWord> for proto::PodReport {
    fn from(report: &PodWord) -> Self {
        let body = match report {
            PodWord::Hello(hello) => proto::PodReportBody::Hello(Box::new(hello.into())),
            PodWord::Load { sample, usage, late_bytes } => proto::PodReportBody::Load(proto::Sample {
                second: sample.second,
                load: measures::load_out(&sample.load),
                usage: usage.map(measures::usage_out),
                late_bytes: late_bytes.map(measures::late_bytes_out),
            }),
            PodWord::State { state, detail } => proto::PodReportBody::State(proto::StateChange {
                state: fields::state_number(*state),
                detail: fields::cut_detail(detail),
            }),
            PodWord::Present(count) => proto::PodReportBody::Present(measures::count_out(*count)),
            PodWord::SettingsAcknowledged(version) => {
                proto::PodReportBody::SettingsAcknowledged(fields::version_out(*version))
            }
            PodWord::Adopted(connections) => {
                proto::PodReportBody::Adopted(measures::adopted_connections_out(connections))
            }
        };
        Self { body: Some(body) }
    }
}

impl TryFrom<proto::PodReport> for PodWord {
    type Error = WireError;
    fn try_from(report: proto::PodReport) -> Result<Self, WireError> {
        Ok(match fields::present("pod_report.body", report.body)? {
            proto::PodReportBody::Hello(hello) => Self::Hello((*hello).try_into()?),
            proto::PodReportBody::Load(sample) => Self::Load {
                sample: Sample {
                    second: fields::second("load.second", sample.second)?,
                    load: measures::load(sample.load)?,
                },
                usage: sample.usage.map(measures::usage),
                late_bytes: sample.late_bytes.map(measures::late_bytes),
            },
            proto::PodReportBody::State(change) => Self::State {
                state: fields::state("state.state", change.state)?,
                detail: fields::detail("state.detail", change.detail)?,
            },
            proto::PodReportBody::Present(count) => Self::Present(measures::count(count)),
            proto::PodReportBody::SettingsAcknowledged(version) => {
                Self::SettingsAcknowledged(fields::version("settings_acknowledged", Some(version))?)
            }
            proto::PodReportBody::Adopted(connections) => {
                Self::Adopted(measures::adopted_connections("adopted.peers", &connections)?)
            }
        })
    }
}

impl From<&PodHello> for proto::PodHello {
    fn from(hello: &PodHello) -> Self {
        let mut history = proto::PodHistory::default();
        for sample in &hello.history {
            // Ages and not seconds: they are small numbers, which take one byte each on the wire.
            history.ages.push(hello.current_second.saturating_sub(sample.second));
            history.concurrency.push(sample.load.concurrency.value());
            history.proxied_concurrency.push(sample.load.proxied_concurrency.value());
            history.request_rate.push(sample.load.request_rate.value());
            history.proxied_request_rate.push(sample.load.proxied_request_rate.value());
            history.queued.push(sample.load.queued);
        }
        Self {
            pod: hello.pod.as_str().to_owned(),
            boot: hello.boot.0,
            state: fields::state_number(hello.state),
            detail: fields::cut_detail(&hello.detail),
            container_concurrency: hello.container_concurrency,
            timeouts: Some(fields::timeouts_out(&hello.timeouts)),
            current_second: hello.current_second,
            history: (!hello.history.is_empty()).then_some(history),
            speaks: hello.speaks.0,
        }
    }
}

impl TryFrom<proto::PodHello> for PodHello {
    type Error = WireError;
    fn try_from(hello: proto::PodHello) -> Result<Self, WireError> {
        Ok(Self {
            speaks: fields::speaks(hello.speaks),
            pod: fields::pod("hello.pod", hello.pod)?,
            boot: fields::boot(hello.boot),
            state: fields::state("hello.state", hello.state)?,
            detail: fields::detail("hello.detail", hello.detail)?,
            container_concurrency: hello.container_concurrency,
            timeouts: fields::timeouts(hello.timeouts),
            current_second: fields::second("hello.current_second", hello.current_second)?,
            history: samples(&hello.history.unwrap_or_default(), hello.current_second)?,
        })
    }
}

fn samples(history: &proto::PodHistory, current_second: u64) -> Result<Vec<Sample>, WireError> {
    let rows = history.ages.len();
    if rows > History::<Sample>::SECONDS_MAX {
        return Err(fields::bad("hello.history", format!("has {rows} seconds, more than 60")));
    }
    let columns = [
        history.concurrency.len(),
        history.proxied_concurrency.len(),
        history.request_rate.len(),
        history.proxied_request_rate.len(),
        history.queued.len(),
    ];
    // One length for all columns, checked once: below, each row is looked up in each column.
    if columns.iter().any(|&length| length != rows) {
        return Err(fields::bad("hello.history", "has columns of different lengths"));
    }
    (0..rows).map(|row| sample(history, current_second, row)).collect()
}

fn sample(history: &proto::PodHistory, current_second: u64, row: usize) -> Result<Sample, WireError> {
    let second = current_second
        // An age beyond the reporter's own start is no age; it would wrap into a second far in the future.
        .checked_sub(history.ages[row])
        .ok_or_else(|| fields::bad("hello.history.ages", "reaches to before the reporter's start"))?;
    let load = Load {
        concurrency: fields::quantity(
            "hello.history.concurrency",
            history.concurrency[row],
            Concurrency::new,
        )?,
        proxied_concurrency: fields::quantity(
            "hello.history.proxied_concurrency",
            history.proxied_concurrency[row],
            Concurrency::new,
        )?,
        request_rate: fields::quantity(
            "hello.history.request_rate",
            history.request_rate[row],
            RequestRate::new,
        )?,
        proxied_request_rate: fields::quantity(
            "hello.history.proxied_request_rate",
            history.proxied_request_rate[row],
            RequestRate::new,
        )?,
        queued: history.queued[row],
    };
    Ok(Sample { second, load })
}

impl From<&PodOrder> for proto::PodOrder {
    fn from(order: &PodOrder) -> Self {
        let body = match order {
            PodOrder::Settings(settings) => proto::PodOrderBody::Settings(settings.as_ref().into()),
            PodOrder::Heartbeat => proto::PodOrderBody::Heartbeat(proto::EmptyMessage {}),
        };
        Self { body: Some(body) }
    }
}

impl TryFrom<proto::PodOrder> for PodOrder {
    type Error = WireError;
    fn try_from(order: proto::PodOrder) -> Result<Self, WireError> {
        Ok(match fields::present("pod_order.body", order.body)? {
            proto::PodOrderBody::Settings(settings) => Self::Settings(Arc::new(settings.try_into()?)),
            proto::PodOrderBody::Heartbeat(proto::EmptyMessage {}) => Self::Heartbeat,
        })
    }
}

impl From<&PodSettings> for proto::PodSettings {
    fn from(settings: &PodSettings) -> Self {
        let (leaving_within, released) = match settings.departure {
            Departure::NotPlanned => (None, false),
            Departure::Leaving { within } => (Some(fields::nanoseconds(within)), false),
            Departure::Released => (None, true),
        };
        Self {
            surge_threshold: settings.surge_threshold,
            routing: fields::routing_number(settings.routing),
            hop_keys: fields::hop_keys_out(&settings.hop_keys),
            version: Some(fields::version_out(settings.version)),
            leaving_within,
            released,
            adoption: settings.adoption.map(|adoption| adoption.0),
            head_size_limit: fields::head_size_out(settings.head_size_limit),
            appends_late: settings.late.appends(),
        }
    }
}

impl TryFrom<proto::PodSettings> for PodSettings {
    type Error = WireError;
    fn try_from(settings: proto::PodSettings) -> Result<Self, WireError> {
        let departure = match (settings.released, settings.leaving_within) {
            (true, _) => Departure::Released,
            (false, Some(within)) => Departure::Leaving { within: Duration::from_nanos(within) },
            (false, None) => Departure::NotPlanned,
        };
        Ok(Self {
            // Before there were versions the latest word counted.
            version: settings.version.map(fields::version_in).unwrap_or_default(),
            surge_threshold: settings.surge_threshold,
            routing: fields::routing("settings.routing", settings.routing)?,
            hop_keys: fields::hop_keys("settings.hop_keys", settings.hop_keys)?,
            departure,
            adoption: settings.adoption.map(AdoptionId),
            head_size_limit: fields::head_size("settings.head_size_limit", settings.head_size_limit)?,
            late: LateTimeout::of_append(settings.appends_late),
        })
    }
}
