//! The queries for Prometheus and for Kubernetes' metric APIs, word by word.

use platform::MetricFuture;
use settings::hpa::reading::HpaDocument;
use settings::hpa::{
    LabelCondition, LabelRequirement, LabelSelector, MetricIdentifier, ObjectReference, PodRequests,
    ResourceName, ResourceTarget, TotalTarget, UsageSource,
};
use tokio::net::TcpListener;
use vocabulary::{MilliValue, PodCount};

use super::*;

fn identifier(requirements: Vec<(&str, LabelCondition)>) -> MetricIdentifier {
    let requirements = requirements
        .into_iter()
        .map(|(label, condition)| LabelRequirement { label: label.into(), condition })
        .collect();
    MetricIdentifier { name: "jobs_waiting".into(), selector: LabelSelector::new(requirements) }
}

fn external(requirements: Vec<(&str, LabelCondition)>) -> MetricSpec {
    let target = TotalTarget::Value(MilliValue::new(1000));
    MetricSpec::External { metric: identifier(requirements), target }
}

#[test]
fn a_selector_becomes_matchers_beside_the_namespace() {
    let all = external(vec![
        ("a", LabelCondition::Equals("x\"y\\".into())),
        ("b", LabelCondition::In(vec!["1.5".into(), "z".into()])),
        ("c", LabelCondition::NotIn(vec!["q|r".into()])),
        ("d", LabelCondition::Exists),
        ("e", LabelCondition::DoesNotExist),
    ]);
    assert_eq!(
        query_of(&all, "shop", "namespace").unwrap(),
        "sum({__name__=\"jobs_waiting\",namespace=\"shop\",a=\"x\\\"y\\\\\",b=~\"1\\\\.5|z\",c!~\"q\\\\|r\",d!=\"\",e=\"\"})"
    );
    assert_eq!(query_of(&external(vec![]), "shop", "").unwrap(), "sum({__name__=\"jobs_waiting\"})");
}

/// Matchers are all to hold, so a selector that names the namespace too finds nothing of another one.
#[test]
fn a_query_never_reads_another_namespace() {
    let foreign = external(vec![("namespace", LabelCondition::Equals("other".into()))]);
    assert_eq!(
        query_of(&foreign, "shop", "namespace").unwrap(),
        "sum({__name__=\"jobs_waiting\",namespace=\"shop\",namespace=\"other\"})"
    );
    let label = external(vec![("a\"}) or vector(1", LabelCondition::Exists)]);
    assert!(query_of(&label, "shop", "namespace").unwrap_err().contains("is no label of Prometheus"));
}

#[test]
fn an_object_is_known_by_its_kind_and_name() {
    let object = MetricSpec::Object {
        described: ObjectReference { api_version: "v1".into(), kind: "Ingress".into(), name: "main".into() },
        metric: identifier(vec![]),
        target: TotalTarget::Value(MilliValue::new(1000)),
    };
    let expected = "sum({__name__=\"jobs_waiting\",namespace=\"shop\",ingress=\"main\"})";
    assert_eq!(query_of(&object, "shop", "namespace").unwrap(), expected);
    assert_eq!(query_of(&object, "shop", "").unwrap(), expected, "an object always has a namespace");
}

#[tokio::test]
async fn without_a_server_every_metric_fails_with_the_remedy() {
    let source = RevisionSource {
        server: None,
        namespace: "default".to_owned(),
        namespace_label: String::new(),
        questions: Arc::new(Semaphore::new(1)),
        platform: None,
    };
    let said = source.ask(0, &external(vec![]), ANSWERS_WITHIN).await;
    assert!(matches!(said.samples, MetricSamples::Failed(_)));
    assert_eq!(said.shown, "no server is asked: set prometheus-url in ConfigMap config-autoscaler");
    assert_eq!(said.query.as_deref(), Some("sum({__name__=\"jobs_waiting\"})"));
}

/// A platform that answers everything at once, and remembers what it was asked.
#[derive(Default)]
struct FakePlatform {
    asked: parking_lot::Mutex<Vec<Vec<usize>>>,
}

impl MetricSource for FakePlatform {
    fn ask(&self, question: MetricQuestion) -> MetricFuture<'_> {
        self.asked.lock().push(question.metrics.clone());
        let answer = |&metric| MetricAnswer {
            metric,
            samples: MetricSamples::Series(vec![MilliValue::new(7000)]),
            query: None,
            shown: "7".to_owned(),
        };
        let answers = question.metrics.iter().map(answer).collect();
        Box::pin(async { MetricReply { answers, target: None } })
    }
}

/// What a pod uses, a number from outside, one of our own, another from outside.
fn question(metrics: Vec<usize>) -> MetricQuestion {
    let cpu = MetricSpec::Resource {
        resource: ResourceName::Cpu,
        container: None,
        target: ResourceTarget::Utilization(50),
    };
    let own = MetricSpec::Own { metric: settings::Metric::Concurrency, target: MilliValue::new(1000) };
    let document = HpaDocument {
        min: PodCount::ONE,
        max: PodCount::new(5),
        metrics: vec![cpu, external(vec![]), own, external(vec![])],
        behavior: None,
    };
    let settings = HpaScaling {
        spec: document.with_settings(ClusterConfig::default().hpa_settings()),
        sync_period: Duration::from_secs(15),
        requests: PodRequests::default(),
        usage: UsageSource::Questions,
    };
    let revision = RevisionName::new("shop", "deployment", "hello").expect("a name");
    MetricQuestion { revision, settings: Arc::new(settings), metrics, within: ANSWERS_WITHIN }
}

fn source(url: Option<String>, platform: &Arc<FakePlatform>) -> RevisionSource {
    let server = url.map(|url| PrometheusServer { url, bearer_token_file: None, ca_file: None });
    RevisionSource {
        server,
        namespace: "shop".to_owned(),
        namespace_label: String::new(),
        questions: Arc::new(Semaphore::new(1)),
        platform: Some(Arc::clone(platform) as Arc<dyn MetricSource>),
    }
}

/// Two metrics of a server that accepts connections and says nothing: neither keeps the other waiting, nor
/// what the platform has known all along.
#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_makes_only_its_own_metrics_fail() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let platform = Arc::<FakePlatform>::default();
    let source = source(Some(url), &platform);
    let question = question(vec![0, 1, 3]);
    let reply = timeout(Duration::from_secs(10), source.ask_all(&question)).await;
    let reply = reply.expect("before the sync gives the round up");
    let places: Vec<usize> = reply.answers.iter().map(|answer| answer.metric).collect();
    assert_eq!(places, [0, 1, 3]);
    assert_eq!(reply.answers[0].samples, MetricSamples::Series(vec![MilliValue::new(7000)]));
    for late in &reply.answers[1..] {
        assert!(matches!(late.samples, MetricSamples::Failed(_)) && late.query.is_some(), "{late:?}");
    }
    // Of two that share one turn the second one's wait counts.
    let shown: Vec<&str> = reply.answers[1..].iter().map(|answer| answer.shown.as_str()).collect();
    assert!(shown.contains(&"no answer within 9s"), "{shown:?}");
}

/// The server that is configured, for what is not of pods.
#[tokio::test(start_paused = true)]
async fn a_metric_is_asked_from_prometheus_where_an_address_is_configured() {
    let all = question(vec![0, 1, 3]);
    let platform = Arc::<FakePlatform>::default();
    let reply = source(None, &platform).ask_all(&all).await;
    assert_eq!((reply.answers.len(), platform.asked.lock().clone()), (3, vec![vec![0, 1, 3]]));
    let platform = Arc::<FakePlatform>::default();
    let nobody = Some("http:///nobody".to_owned());
    let reply = source(nobody, &platform).ask_all(&all).await;
    assert_eq!((reply.answers.len(), platform.asked.lock().clone()), (3, vec![vec![0]]));
    // Nothing to ask for but the pods themselves.
    let platform = Arc::<FakePlatform>::default();
    source(None, &platform).ask_all(&question(vec![])).await;
    assert_eq!(platform.asked.lock().clone(), [vec![0_usize; 0]]);
}
