//! The six loads: a step, a ramp, from zero, bursts, one request at a time in a pod, and a steady one whose
//! autoscaler is restarted.
//!
//! Needs of a steady rate lie well between two whole numbers of pods, above the lower one: at a whole number
//! chance alone decides, and requests that a pause of the machine has brought together must not need one pod
//! more.

use tests::Service;

/// One load, and the settings under which it runs.
pub(crate) struct TruthLoad {
    pub(crate) name: &'static str,
    pub(crate) is_in_short_form: bool,
    /// How long the app holds each request, in milliseconds.
    pub(crate) hold: u32,
    pub(crate) limits: PodLimits,
    pub(crate) pattern: ArrivalPattern,
    pub(crate) interruption: Interruption,
}

/// How many requests a pod takes.
#[derive(Clone, Copy)]
pub(crate) enum PodLimits {
    /// As many as come; two are aimed at.
    TargetOfTwo,
    /// One request at a time.
    OneAtATime,
}

/// When requests are sent; fractions are those of the whole time.
#[derive(Clone, Copy)]
pub(crate) enum ArrivalPattern {
    /// Evenly at one rate in a second, and at another one from a third of the time on.
    Step(f64, f64),
    /// Evenly at a rate that rises from nothing to this one until two thirds of the time.
    Ramp(f64),
    /// Evenly at this rate in the first tenth of each half of the time.
    Twice(f64),
    /// So many at once, every so many seconds.
    Bursts(u32, f64),
    Steady(f64),
}

pub(crate) enum Interruption {
    None,
    /// In the middle of the time.
    AutoscalerRestarts,
}

pub(crate) const LOADS: [TruthLoad; 6] = [
    TruthLoad { name: "step", is_in_short_form: true, pattern: ArrivalPattern::Step(5.0, 42.5), ..PLAIN },
    TruthLoad { name: "ramp", pattern: ArrivalPattern::Ramp(62.5), ..PLAIN },
    TruthLoad { name: "from zero", is_in_short_form: true, pattern: ArrivalPattern::Twice(2.5), ..PLAIN },
    TruthLoad { name: "bursts", hold: 300, pattern: ArrivalPattern::Bursts(21, 15.0), ..PLAIN },
    TruthLoad {
        name: "one at a time",
        hold: 250,
        limits: PodLimits::OneAtATime,
        pattern: ArrivalPattern::Steady(10.0),
        ..PLAIN
    },
    TruthLoad {
        name: "autoscaler restarted",
        is_in_short_form: true,
        pattern: ArrivalPattern::Steady(22.5),
        interruption: Interruption::AutoscalerRestarts,
        ..PLAIN
    },
];

/// What loads have in common; each has a name and a pattern of its own.
const PLAIN: TruthLoad = TruthLoad {
    name: "",
    is_in_short_form: false,
    hold: 200,
    limits: PodLimits::TargetOfTwo,
    pattern: ArrivalPattern::Steady(0.0),
    interruption: Interruption::None,
};

/// A millisecond in seconds: planned times are whole milliseconds.
const STEP: f64 = 0.001;

impl TruthLoad {
    /// The Service, which runs this app.
    pub(crate) fn service(&self, app: &str) -> Service {
        let service = Service::running(&self.service_name(), &[app]);
        match self.limits {
            PodLimits::TargetOfTwo => {
                service.scaling("target", "2").scaling("target-utilization-percentage", "100")
            }
            PodLimits::OneAtATime => service.spec("containerConcurrency: 1"),
        }
    }

    /// The name of the Service: that of the load, as DNS allows it.
    pub(crate) fn service_name(&self) -> String {
        self.name.replace(' ', "-")
    }

    /// The seconds after its beginning at which a load of this length sends its requests, in their order.
    pub(crate) fn arrivals(&self, length: f64) -> Vec<f64> {
        match self.pattern {
            ArrivalPattern::Step(before, after) => {
                evenly(length, |at| if at < length / 3.0 { before } else { after })
            }
            ArrivalPattern::Ramp(last) => evenly(length, |at| last * (at / length * 1.5).min(1.0)),
            ArrivalPattern::Twice(rate) => {
                let half = length / 2.0;
                evenly(length, |at| if at % half < length / 10.0 { rate } else { 0.0 })
            }
            ArrivalPattern::Bursts(size, every) => {
                let bursts = (0_u32..).map(|number| 1.0 + f64::from(number) * every);
                let times = bursts.take_while(|at| *at < length);
                times.flat_map(|at| (0..size).map(move |_| at)).collect()
            }
            ArrivalPattern::Steady(rate) => evenly(length, |_| rate),
        }
    }
}

/// Times at which a rate has made up one more request.
fn evenly(length: f64, rate: impl Fn(f64) -> f64) -> Vec<f64> {
    let (mut times, mut made_up) = (Vec::new(), 0.5);
    let steps = (0_u32..).map(|number| f64::from(number) * STEP);
    for at in steps.take_while(|at| *at < length) {
        made_up += rate(at) * STEP;
        if made_up >= 1.0 {
            made_up -= 1.0;
            times.push(at);
        }
    }
    times
}
