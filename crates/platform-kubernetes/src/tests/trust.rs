//! Another authority is asked for on the Secret of the present one.

use cluster::WallSeconds;
use k8s_openapi::api::core::v1::Secret;
use vocabulary::{AUTHORITY_SECRET, TLS_CHAIN, TLS_REVOKED, TLS_ROOTS};

use super::*;

const SECRETS: &str = "api/v1/secrets";
const SYSTEM: &str = "ebb-system";
const NOW: WallSeconds = WallSeconds(1_800_000_000);

fn secret(server: &ScriptedServer, name: &str) -> Secret {
    let object = server.object(SECRETS, SYSTEM, name).expect("it was made");
    serde_json::from_value(object).expect("a Secret")
}

/// How many certificates stand in a Secret under this name.
fn certificates(server: &ScriptedServer, name: &str, key: &str) -> usize {
    let data = secret(server, name).data.unwrap_or_default();
    let text = data.get(key).map(|text| String::from_utf8_lossy(&text.0).into_owned());
    text.map_or(0, |text| text.matches("BEGIN CERTIFICATE").count())
}

fn ask(server: &ScriptedServer, how: &str) {
    let mut secret = secret(server, AUTHORITY_SECRET);
    let annotations = secret.metadata.annotations.get_or_insert_default();
    annotations.insert("ebb.dev/rotate".to_owned(), how.to_owned());
    server.put(SECRETS, serde_json::to_value(&secret).expect("it can be written"));
}

#[tokio::test]
async fn an_authority_is_followed_with_trust_in_the_former_one_or_revoked_without() {
    for (how, roots, revoked) in [("now", 2, 0), ("revoke", 1, 1)] {
        let server = ScriptedServer::start().await;
        let uri = format!("http://{}", server.address).parse().expect("an address");
        let client = connection::client(kube::Config::new(uri)).expect("a client");
        let trust = Trust::new(client, SYSTEM);
        let first = trust.settle(NOW).await.expect("it is made");
        ask(&server, how);
        let second = trust.settle(NOW).await.expect("it is followed");
        assert_ne!(first.roots, second.roots, "{how}");
        for holder in ["ebb-injector-tls", "ebb-activator-tls", "ebb-autoscaler-tls"] {
            // What pods get that are made from now on, and by what programs know each other.
            assert_eq!(certificates(&server, holder, TLS_ROOTS), roots, "{how}: {holder}");
            // Pods that know the first alone are led from it to the second.
            assert_eq!(certificates(&server, holder, TLS_CHAIN), 2, "{how}: {holder}");
        }
        assert_eq!(certificates(&server, AUTHORITY_SECRET, TLS_REVOKED), revoked, "{how}");
        let annotations = secret(&server, AUTHORITY_SECRET).metadata.annotations;
        assert_eq!(annotations, None, "{how}: it is granted once");
        assert_eq!(trust.settle(NOW).await.expect("nothing is due"), second, "{how}");
    }
}
