//! Counts are open to every user of the machine. What apps print is shown with the token alone, which a page
//! takes out of its address and keeps for its tab.

use serde_json::json;
use tests::browser::Tab;
use tests::{ConfigMap, Ebb, Service};

/// They are shown as text, whatever stands in them.
const LAST_WORDS: &str = "<img src=x onerror=alert(4711)>";
const PAGE: &str = "#/revision/default/service/crashes";

/// The expression that is true once the page shows this text.
fn shows(text: &str) -> String {
    format!("document.getElementById('content')?.innerText.includes({}) === true", json!(text))
}

#[tokio::test]
async fn last_words_are_shown_with_the_token_alone_which_stays_in_no_address() {
    let script = format!("echo '{LAST_WORDS}' >&2; exit 3");
    let crashes = Service::running("crashes", &["sh", "-c", &script]);
    let ebb = Ebb::up(&[crashes], &ConfigMap::short()).await;
    ebb.until("crashes", "its last words", |revision| revision.0.to_string().contains(LAST_WORDS)).await;
    let mut tab = Tab::open().await;
    tab.load(&format!("http://{}/{PAGE}", ebb.api)).await;
    tab.until(&shows("exited with code 3")).await;
    tab.until(&shows("the address that `ebb dashboard` prints shows its last lines")).await;
    assert_eq!(tab.value(&shows(LAST_WORDS)).await, json!(false));

    let (code, address, error) = ebb.run(&["dashboard", "--print-only"]).await;
    assert_eq!(code, 0, "{error}");
    tab.load(address.trim_end()).await;
    tab.until("document.querySelectorAll('tbody tr').length === 1").await;
    let kept = "[location.hash, location.href.includes('ebb_'), document.cookie, localStorage.length, \
                sessionStorage.getItem('ebb-token').startsWith('ebb_')]";
    assert_eq!(tab.value(kept).await, json!(["#/", false, "", 0, true]));
    tab.value(&format!("location.hash = {}", json!(PAGE))).await;
    tab.until(&shows(LAST_WORDS)).await;
    assert_eq!(tab.value("document.querySelectorAll('img').length").await, json!(0));
    assert_eq!(tab.complaints().await, Vec::<String>::new());
}
