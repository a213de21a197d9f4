//! What a Prometheus of this machine gets to see.

use serde_json::Value;
use tests::client::whole_answer;
use tests::{ConfigMap, Ebb, Service};

#[tokio::test]
async fn one_page_has_every_pod_and_one_list_says_where_each_has_its_own() {
    let services =
        ["one", "two"].map(|name| Service::new(name).scaling("min-scale", "1").scaling("max-scale", "1"));
    let ebb = Ebb::up(&services, &ConfigMap::short()).await;
    for (service, requests) in [("one", 7), ("two", 11)] {
        ebb.until_pods(service, 1).await;
        ebb.load(service).burst(requests).await.assert_all_answered();
    }
    let page = whole_answer(ebb.api, "localhost", "/metrics").await.expect("there is a page");
    let list = whole_answer(ebb.api, "localhost", "/v1/http-sd").await.expect("there is a list");
    let (_, list) = list.split_once("\r\n\r\n").expect("a head");
    let list: Value = serde_json::from_str(list).unwrap_or_else(|error| panic!("{error}: {list}"));
    assert_eq!(list.as_array().map(Vec::len), Some(2), "{list}");
    assert!(page.contains("\nsupervisor_unscraped_pods 0\n"), "{page}");
    for (service, requests) in [("one", 7), ("two", 11)] {
        let revision = ebb.revision(service).await.expect("ebb answers");
        let pod = revision.pods()[0]["name"].as_str().expect("a name");
        let labels = format!("namespace=\"default\",revision=\"service/{service}\",pod=\"{pod}\"");
        let line = format!("queue_proxy_responses_total{{{labels},class=\"2xx\"}} {requests}");
        assert!(page.lines().any(|shown| shown == line), "{line} is not in\n{page}");
        let group = list.as_array().into_iter().flatten().find(|group| group["labels"]["pod"] == pod);
        let group = group.unwrap_or_else(|| panic!("{pod} is not in {list}"));
        assert_eq!(group["labels"]["revision"], format!("service/{service}"));
        let address =
            group["targets"][0].as_str().and_then(|target| target.parse().ok()).expect("an address");
        let own = whole_answer(address, "localhost", "/metrics").await.expect("there is a page");
        assert!(
            own.contains(&format!("\nqueue_proxy_responses_total{{class=\"2xx\"}} {requests}\n")),
            "{own}"
        );
    }
}
