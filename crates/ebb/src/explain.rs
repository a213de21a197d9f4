//! `ebb explain`: why a revision has the number of pods it has, why not zero, and why not ready.

use std::process::ExitCode;
use std::time::Duration;

use autoscaler::api_types::{
    AskedMetricView, CallerView, DecisionView, FailureView, HpaConditionView, HpaView, KillView,
    LateBytesView, PlatformTermsView, PodView, PredictionView, ReasonView, RevisionDetail, RevisionList,
    RevisionSummary,
};
use vocabulary::{PodCount, format_duration, shown};

use crate::autoscaler_api::AutoscalerApi;
use crate::cli::{ExplainOptions, OutputFormat};
use crate::cluster::problem::ProblemSubject;
use crate::get::{choose, first_hop, number};
use crate::output;

/// Shows one revision with its pods and its last decisions, newest last.
pub(crate) fn run(options: &ExplainOptions) -> anyhow::Result<ExitCode> {
    let detail: RevisionDetail = crate::up::runtime()?.block_on(async {
        let api = AutoscalerApi::find(&options.target).await?;
        let list = api.revisions().await?;
        let wanted = meant(&api, &list, &options.revision).await;
        let name = &choose(&list, &wanted)?.name;
        api.get(&format!("/v1/revisions/{name}")).await
    })?;
    match options.target.output {
        OutputFormat::Json => output::print_json(&detail)?,
        OutputFormat::Table | OutputFormat::Wide => output::print_shown(text(&detail).trim_end())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The revision that a person means, by its own name or by that of its Service in an installed Knative, of
/// which the latest ready one is meant.
async fn meant(api: &AutoscalerApi, list: &RevisionList, wanted: &str) -> String {
    if choose(list, wanted).is_ok() {
        return wanted.to_owned();
    }
    api.latest_ready_revision(wanted).await.unwrap_or_else(|| wanted.to_owned())
}

/// The rule of prediction, with what it brought and cost.
fn prediction(now: &PredictionView) -> String {
    let hours = |seconds: u64| format_duration(Duration::from_secs(seconds));
    format!(
        "  predicted  rule {}; last 7 days: {:.0} of {:.0} request-seconds late; {} of pods added, {} of them needed; {} left today",
        now.rule,
        now.late_request_seconds,
        now.late_without_request_seconds,
        hours(now.extra_pod_seconds),
        hours(now.used_pod_seconds),
        hours(now.budget_left_pod_seconds)
    )
}

/// How many pods the load does not call for yet, if any.
fn early(pods: PodCount) -> String {
    if pods == PodCount::ZERO { String::new() } else { format!(" ({pods} early)") }
}

fn text(detail: &RevisionDetail) -> String {
    let now = &detail.summary;
    let bounds = detail.max_scale.map_or_else(|| "no limit".to_owned(), |max| max.to_string());
    let mut lines = vec![
        format!("{} ({})", now.name, now.template),
        format!(
            "  pods       {} wanted{}, {} ready; min-scale {}, max-scale {bounds}",
            now.wanted,
            early(now.early_pods),
            now.ready_pods,
            detail.min_scale
        ),
        load(now),
        format!(
            "  path       {} serve{}",
            first_hop(now.routing),
            if first_hop(now.routing) == "pods" { "" } else { "s" }
        ),
        format!("  waiting    {}", now.waiting),
        format!("  hosts      {}", detail.hosts.join(", ")),
    ];
    lines.extend(detail.summary.url.iter().map(|url| format!("  url        {url}")));
    lines.push(zero(detail));
    lines.extend(awake(detail));
    lines.extend(now.prediction.as_ref().map(prediction));
    lines.extend(left_alone(now).map(|why| format!("  left alone {why}")));
    let terms = platform(&detail.platform, now.left_alone.is_some());
    lines.extend(terms.into_iter().map(|line| format!("  platform   {line}")));
    if let Some(why) = &now.why_not_ready {
        lines.push(format!("  not ready  {why}"));
    }
    lines.extend(short_of_cores(now.awaiting_core_pods));
    lines.extend(now.owner.iter().filter(|owner| owner.buckets > 1).map(|owner| {
        format!(
            "  owner      {} (bucket {} of {}, epoch {})",
            owner.name,
            owner.bucket + 1,
            owner.buckets,
            owner.epoch
        )
    }));
    lines.extend(detail.hpa.iter().flat_map(status));
    lines.extend(detail.asked.iter().map(asked));
    lines.extend(detail.last_failure.iter().flat_map(failure));
    lines.extend(detail.last_kill.iter().map(kill));
    lines.extend(detail.pods.iter().filter_map(late_bytes));
    lines.extend(problems(detail).map(|problem| format!("  problem    {problem}")));
    lines.push(String::new());
    let pods = if detail.pods.is_empty() { "no pods".to_owned() } else { pods(&detail.pods) };
    lines.push(pods);
    lines.push(String::new());
    lines.extend(detail.decisions.iter().flat_map(decision));
    if detail.decisions.is_empty() {
        lines.push("no decision yet".to_owned());
    }
    lines.join("\n") + "\n"
}

/// Whose requests keep the revision from zero, and how they would count as nothing.
fn awake(detail: &RevisionDetail) -> Option<String> {
    if detail.min_scale > PodCount::ZERO || detail.callers.is_empty() {
        return None;
    }
    let callers: Vec<String> = detail.callers.iter().map(caller).collect();
    Some(format!(
        "  awake by   {}; ebb.dev/ignore-user-agents names those whose requests are to count as nothing",
        callers.join(", ")
    ))
}

fn caller(caller: &CallerView) -> String {
    let agent = match caller.user_agent.as_str() {
        "" => "no user-agent".to_owned(),
        agent => shown(agent),
    };
    format!("{agent} from {} ({} ago)", caller.address, age(caller.age_ms))
}

/// Why what is decided is not done: a person's wish, or another autoscaler.
fn left_alone(now: &RevisionSummary) -> Option<String> {
    now.shadow.as_ref()?;
    Some(match now.left_alone.as_deref() {
        Some("paused") => "it is paused (ebb.dev/paused): the decisions below are not carried out".to_owned(),
        Some(other) => format!("{other}: the decisions below are not carried out"),
        None => "it is in shadow: the decisions below are not carried out".to_owned(),
    })
}

/// What the platform changes of what annotations and ConfigMap ask for, a line each. `is_left_alone`
/// means that another line says already why the count is not written.
fn platform(terms: &PlatformTermsView, is_left_alone: bool) -> Vec<String> {
    let PlatformTermsView { may_write, reachable, floor, floor_cause, hold } = terms;
    let mut lines = Vec::new();
    if !may_write && !is_left_alone {
        lines.push("the count is not ours to write, whatever annotations say".to_owned());
    }
    if !reachable {
        lines.push("no traffic can arrive, so the settings keep no pod".to_owned());
    }
    if *floor > PodCount::ZERO {
        let pods = if *floor == PodCount::ONE { "pod" } else { "pods" };
        let why = floor_in_words(floor_cause.as_deref());
        lines.push(format!("keeps at least {floor} {pods}, whatever min-scale says: {why}"));
    }
    lines.extend(hold.iter().map(|hold| format!("no request waits for a pod at zero: {hold}")));
    lines
}

/// Why a platform has a floor. One that this version does not know is shown as it came.
fn floor_in_words(cause: Option<&str>) -> &str {
    match cause {
        Some("given_back") => "a Service was given back, and for a minute clients may still come through ebb",
        Some("abandoned") => "its Service has no selector, so no other program than ebb can serve it",
        Some("bypass") => "a Service leads clients to its pods past ebb",
        Some("invalid_annotations") => "the annotations of the workload are invalid",
        Some(other) => other,
        None => "clients are served by its pods alone",
    }
}

/// Why starts wait for a core, and the key by which fewer would.
fn short_of_cores(pods: PodCount) -> Option<String> {
    let subject = match pods.value() {
        0 => return None,
        1 => "1 pod waits".to_owned(),
        pods => format!("{pods} pods wait"),
    };
    Some(format!(
        "  starting   {subject} for a core: starts of pods use the cores of this machine, and more of them at once would take the cores from pods that serve; autoscaling.knative.dev/max-scale limits how many pods are wanted"
    ))
}

/// What `kubectl describe hpa` shows of one of Kubernetes' own.
fn status(hpa: &HpaView) -> Vec<String> {
    let conditions = hpa.conditions.iter().map(|condition| {
        let HpaConditionView { kind, status, reason, age_ms } = condition;
        format!("  condition  {kind} {status} ({reason}), for {}", age(*age_ms))
    });
    let metrics = hpa.metrics.iter().filter_map(|metric| {
        let why = metric.failure.as_ref()?;
        Some(format!("  unknown    {}: {why}", metric.metric))
    });
    let scaled = hpa.last_scale_ms.map(|ago| format!("  scaled     {} ago", age(ago)));
    conditions.chain(metrics).chain(scaled).collect()
}

/// What is wrong with it, with the Services around it, and with the settings of all.
fn problems(detail: &RevisionDetail) -> impl Iterator<Item = &String> {
    let name = &detail.summary.name;
    detail.problems.iter().filter(move |problem| {
        ProblemSubject::of(problem)
            .is_none_or(|one| one.is(name) || (one.kind == "Service" && one.namespace == name.namespace()))
    })
}

/// A question to a source of metrics, and its answer.
fn asked(asked: &AskedMetricView) -> String {
    let AskedMetricView { metric, query, answer } = asked;
    match query {
        Some(query) => format!("  asked      {metric}: {query} -> {answer}"),
        None => format!("  not asked  {metric}: {answer}"),
    }
}

/// Requests, or the metrics of class hpa.
fn load(now: &RevisionSummary) -> String {
    if let Some(metrics) = &now.metrics {
        return format!("  metrics    {metrics} ({})", now.mode);
    }
    format!(
        "  load       {} {} over the stable window, {} over the panic window; {} per pod aimed at ({})",
        number(now.stable_value),
        now.metric,
        number(now.panic_value),
        number(Some(now.target_per_pod)),
        now.mode,
    )
}

fn zero(detail: &RevisionDetail) -> String {
    if detail.summary.wanted == PodCount::ZERO {
        "  zero       now; the next request starts a pod".to_owned()
    } else {
        format!("  not zero   {}", why_not_zero(detail))
    }
}

fn why_not_zero(detail: &RevisionDetail) -> String {
    let now = &detail.summary;
    if let Some(why) = &now.why_not_zero {
        why.clone()
    } else {
        now.desired.map_or_else(
            || "nothing was decided yet".to_owned(),
            |desired| format!("the load calls for {desired}: {}", now.last_reason),
        )
    }
}

/// The last failure with what the app printed, however long ago: a person looks for exactly that.
fn failure(failure: &FailureView) -> Vec<String> {
    let FailureView { pod, age_ms, reason, last_lines, withheld } = failure;
    let mut lines = vec![format!("  failed     pod {pod}, {} ago: {reason}", age(*age_ms))];
    lines.extend(last_lines.iter().map(|line| format!("             | {line}")));
    lines.extend(withheld.iter().map(|advice| format!("             ({advice})")));
    lines
}

/// A pod that was killed is gone, and its successor ends in the same way.
fn kill(kill: &KillView) -> String {
    let KillView { pod, age_ms, reason } = kill;
    format!("  killed     pod {pod}, {} ago: {reason}", age(*age_ms))
}

/// Why a connection to the app is used once, and how often the app gave cause for that.
fn late_bytes(pod: &PodView) -> Option<String> {
    let LateBytesView { connections, reuse_in_ms } = pod.late_bytes?;
    let plural = if connections == 1 { "" } else { "s" };
    Some(format!(
        "  late bytes pod {}: the app sent bytes behind whole responses on {connections} connection{plural}; each of its connections is used for one request, for {} more",
        pod.name,
        age(reuse_in_ms)
    ))
}

fn pods(pods: &[PodView]) -> String {
    let mut table = output::table(&["POD", "STATE", "IN FLIGHT", "QUEUED", "APP PID", "PORT", "TROUBLE"]);
    for pod in pods {
        let state = match pod {
            PodView { leaving: true, .. } => "leaving".to_owned(),
            PodView { awaits_core: true, .. } => "waits for a core".to_owned(),
            PodView { state, .. } => format!("{state:?}").to_lowercase(),
        };
        let detail = |key: &str| pod.details.get(key).cloned().unwrap_or_else(|| "-".to_owned());
        table.add_row(vec![
            pod.name.to_string(),
            state,
            number(Some(pod.in_flight)),
            pod.queued.to_string(),
            detail("app_pid"),
            detail("app_port"),
            pod.trouble.clone().unwrap_or_default(),
        ]);
    }
    table.to_string()
}

fn decision(decision: &DecisionView) -> Vec<String> {
    let inputs = decision.inputs.map_or_else(
        || "no data".to_owned(),
        |inputs| {
            format!(
                "{} ready, stable {}, panic {}, target {}",
                inputs.ready_pods,
                number(Some(inputs.stable_value)),
                number(Some(inputs.panic_value)),
                number(Some(inputs.target_per_pod)),
            )
        },
    );
    let wanted = decision.wanted.map_or_else(|| "left alone".to_owned(), |wanted| wanted.to_string());
    let mut lines = vec![format!(
        "{} ago, {} ({inputs}): {wanted}; {}, {} in the path, excess burst capacity {}",
        age(decision.age_ms),
        decision.trigger,
        decision.mode,
        first_hop(decision.routing),
        decision.excess_burst_capacity,
    )];
    lines.extend(decision.reasons.iter().map(reason));
    lines.extend(decision.why_not_zero.iter().map(|why| format!("    not zero: {why}")));
    lines
}

fn reason(reason: &ReasonView) -> String {
    let count = |count: Option<PodCount>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
    format!("    {} -> {}  {}: {}", count(reason.before), count(reason.after), reason.stage, reason.text)
}

fn age(milliseconds: u64) -> String {
    let age = Duration::from_millis(milliseconds);
    if age < Duration::from_secs(10) {
        format!("{:.1}s", age.as_secs_f64())
    } else {
        vocabulary::format_duration(Duration::from_secs(age.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use autoscaler::api_types::ShadowView;

    use super::*;

    #[test]
    fn the_terms_of_the_platform_are_told_from_settings() {
        assert_eq!(platform(&PlatformTermsView::default(), false), [""; 0]);
        let held = PlatformTermsView {
            may_write: false,
            reachable: false,
            floor: PodCount::new(2),
            floor_cause: Some("given_back".to_owned()),
            hold: Some("HorizontalPodAutoscaler hello decides its count".to_owned()),
        };
        assert_eq!(
            platform(&held, false),
            [
                "the count is not ours to write, whatever annotations say",
                "no traffic can arrive, so the settings keep no pod",
                "keeps at least 2 pods, whatever min-scale says: a Service was given back, and for a minute clients may still come through ebb",
                "no request waits for a pod at zero: HorizontalPodAutoscaler hello decides its count",
            ]
        );
    }

    #[test]
    fn a_metric_that_could_not_be_asked_for_is_not_called_asked() {
        let of = |query: Option<&str>, answer: &str| {
            asked(&AskedMetricView {
                metric: "cpu".to_owned(),
                query: query.map(str::to_owned),
                answer: answer.to_owned(),
            })
        };
        assert_eq!(
            of(Some("GET /apis/metrics"), "no metrics server: 404"),
            "  asked      cpu: GET /apis/metrics -> no metrics server: 404"
        );
        assert_eq!(of(None, "set prometheus-url"), "  not asked  cpu: set prometheus-url");
    }

    #[test]
    fn a_caller_is_named_with_its_address_and_age() {
        let of = |user_agent: &str| {
            caller(&CallerView {
                user_agent: user_agent.to_owned(),
                address: [10, 0, 0, 7].into(),
                age_ms: 3200,
            })
        };
        assert_eq!(of("Prometheus/2.45"), "\"Prometheus/2.45\" from 10.0.0.7 (3.2s ago)");
        assert_eq!(of(""), "no user-agent from 10.0.0.7 (3.2s ago)");
    }

    #[test]
    fn a_count_that_is_left_alone_is_called_by_its_cause() {
        let mut now = crate::get::summary_for_tests("shop/deployment/hello");
        assert_eq!(left_alone(&now), None);
        let compared =
            ShadowView { compared_ms: 9, compared: 1, differed: 0, differs_ms: None, last_difference: None };
        now.shadow = Some(compared);
        assert!(left_alone(&now).is_some_and(|why| why.starts_with("it is in shadow: ")));
        now.left_alone = Some("paused".to_owned());
        assert!(left_alone(&now).is_some_and(|why| why.starts_with("it is paused (ebb.dev/paused): ")));
        let not_ours = PlatformTermsView { may_write: false, ..PlatformTermsView::default() };
        assert_eq!(platform(&not_ours, true), [""; 0]);
    }

    #[test]
    fn starts_that_wait_for_a_core_are_explained_with_the_key_that_limits_them() {
        assert_eq!(short_of_cores(PodCount::ZERO), None);
        let one = short_of_cores(PodCount::ONE).unwrap_or_default();
        assert!(one.starts_with("  starting   1 pod waits for a core: "), "{one}");
        let many = short_of_cores(PodCount::new(80)).unwrap_or_default();
        assert!(many.starts_with("  starting   80 pods wait for a core: "), "{many}");
        assert!(many.contains("autoscaling.knative.dev/max-scale"), "{many}");
    }
}
