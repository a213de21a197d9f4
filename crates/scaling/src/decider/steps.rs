//! The steps from two averages to a count, up to the scale-down delay, in Knative's order.

use settings::ScalingSpec;
use vocabulary::{PodCount, Timestamp};

use crate::bounds::RateLimits;
use crate::decision::{NeedText, Stage};
use crate::panic::PanicState;
use crate::reasons::Reasons;

/// What there is to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    pub(super) ready: PodCount,
    /// The averages, as one wants to read them.
    pub(super) stable: f64,
    pub(super) panic: f64,
    /// The number of pods that the present counts ask for, between ticks.
    pub(super) surge: Option<PodCount>,
}

/// A count, why, and the panic state that goes with it.
#[derive(Clone, Debug)]
pub(super) struct Evaluation {
    pub(super) panic: PanicState,
    pub(super) reasons: Reasons,
}

impl Evaluation {
    pub(super) fn wants(&self) -> PodCount {
        self.reasons.number().unwrap_or_default()
    }
}

/// The needs of both windows, in whole pods but not yet counts: the panic threshold compares them before
/// anything is clamped.
#[derive(Clone, Copy)]
struct Needs {
    stable: f64,
    panic: f64,
    /// Whether the panic window's need is that of the present counts.
    panic_is_surge: bool,
}

pub(super) fn evaluate(
    spec: &ScalingSpec,
    demand: Demand,
    mut panic: PanicState,
    now: Timestamp,
) -> Evaluation {
    let mut reasons = Reasons::default();
    let needs = needs(spec, demand, panic.providing(demand.ready), &mut reasons);
    let stable_count = limited(spec, demand.ready, needs.stable, &mut reasons);

    // Compared as the load was, not as the limits leave it.
    if needs.panic / panic.providing(demand.ready).as_f64().max(1.0) >= spec.panic_threshold {
        panic.alarm(now);
    } else {
        panic.calm(spec.stable_window, now);
    }
    if panic.only_holds() {
        let held = panic.hold(stable_count);
        let text = NeedText::FoundAtStart { count: held, window: spec.stable_window };
        reasons.step(Stage::Panic, Some(held), text);
    } else if panic.is_panicking() {
        // Its reasons are left out: the line that follows says what panic made of the larger of both.
        let panic_count = limited(spec, demand.ready, needs.panic, &mut Reasons::default());
        let stage = if needs.panic_is_surge { Stage::Surge } else { Stage::Panic };
        reasons.step(stage, Some(stable_count.max(panic_count)), panic_text(spec, demand, needs));
        let held = panic.hold(stable_count.max(panic_count));
        let text = NeedText::MostInPanic { count: held, window: spec.stable_window };
        reasons.step(Stage::Panic, Some(held), text);
    }
    Evaluation { panic, reasons }
}

/// Load divided by the target, in both windows; present counts replace what is smaller.
fn needs(spec: &ScalingSpec, demand: Demand, providing: PodCount, reasons: &mut Reasons) -> Needs {
    let mut stable = (demand.stable / spec.target_per_pod).ceil();
    let window_need = (demand.panic / spec.target_per_pod).ceil();
    let text = NeedText::StableWindow {
        value: demand.stable,
        metric: spec.metric,
        window: spec.stable_window,
        target: spec.target_per_pod,
    };
    reasons.step(Stage::StableWindow, Some(PodCount::truncated_from(stable)), text);
    let surge = demand.surge.unwrap_or_default();
    // A need of one pod is no panic, and the first requests would have to wait until the windows show them.
    if providing == PodCount::ZERO && surge.as_f64() > stable {
        stable = surge.as_f64();
        reasons.step(Stage::Surge, Some(surge), NeedText::PresentAndNoneReady { need: surge });
    }
    let surge = surge.as_f64();
    Needs { stable, panic: window_need.max(surge), panic_is_surge: surge > window_need }
}

/// A need between the rate limits, and raised to the activation scale.
fn limited(spec: &ScalingSpec, ready: PodCount, need: f64, reasons: &mut Reasons) -> PodCount {
    let count = RateLimits::around(spec, ready).apply(need);
    if count.as_f64() < need {
        let rate = spec.max_scale_up_rate;
        reasons.step(Stage::ScaleUpRate, Some(count), NeedText::ScaleUpRate { ready, count, rate });
    } else {
        let rate = spec.max_scale_down_rate;
        reasons.step(Stage::ScaleDownRate, Some(count), NeedText::ScaleDownRate { ready, count, rate });
    }
    // Knative tests the raw need, after the rate limit, at every evaluation; a scale of 1 is what any need
    // asks for anyway.
    if spec.activation_scale <= PodCount::ONE || need <= 0.0 || spec.activation_scale <= count {
        return count;
    }
    let count = spec.activation_scale;
    reasons.step(Stage::ActivationScale, Some(count), NeedText::ActivationScale { count });
    count
}

fn panic_text(spec: &ScalingSpec, demand: Demand, needs: Needs) -> NeedText {
    let (need, ready) = (needs.panic, demand.ready);
    if needs.panic_is_surge {
        return NeedText::Present { need, ready };
    }
    NeedText::PanicWindow { value: demand.panic, metric: spec.metric, window: spec.panic_window, need, ready }
}
