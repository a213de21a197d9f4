//! What the owner's word changes, how long the first one is waited for, and what proves a hop.

use http::HeaderValue;
use vocabulary::Epoch;

use super::*;

#[test]
fn heads_of_hops_are_not_refused_before_the_owner_says_how_large_they_may_be() {
    let settings = OwnerSettings::new();
    let mut hop = HeaderMap::new();
    hop.insert(names::EBB_HOP_KEY, HeaderValue::from_static("key"));
    let bytes = |headers: &HeaderMap| settings.head_limits(headers).bytes;
    assert_eq!((bytes(&HeaderMap::new()), bytes(&hop)), (128 << 10, 528 << 10));
    let told = PodSettings {
        hop_keys: vec![HopKey::new("key".to_owned())],
        head_size_limit: HeadSizeLimit::MIN,
        ..PodSettings::default()
    };
    assert!(settings.set(&told));
    assert_eq!((bytes(&HeaderMap::new()), bytes(&hop)), (8 << 10, 24 << 10));
}

#[test]
fn the_present_and_the_previous_key_are_proof_and_nothing_else() {
    let settings = OwnerSettings::new();
    let vouched = |key: &'static str| {
        let mut headers = HeaderMap::new();
        headers.insert(names::EBB_HOP_KEY, HeaderValue::from_static(key));
        settings.has_valid_hop_key(&headers)
    };
    assert!(!vouched("new") && !vouched(""), "no key is trusted before the first link");
    let keys = ["new", "old"].map(|key| HopKey::new(key.to_owned()));
    let told = PodSettings { hop_keys: keys.to_vec(), ..PodSettings::default() };
    assert!(settings.set(&told));
    assert!(vouched("new") && vouched("old"));
    assert!(!vouched("ne") && !vouched("newer") && !vouched("nex") && !vouched(""));
    assert!(!settings.has_valid_hop_key(&HeaderMap::new()));
}

#[tokio::test(start_paused = true)]
async fn the_first_word_is_waited_for_and_where_none_comes_only_at_first() {
    let clock = Clock::start();
    let mut claims = HeaderMap::new();
    claims.insert(names::EBB_HOP_KEY, HeaderValue::from_static("key"));
    let settings = OwnerSettings::new();
    assert!(settings.hop_keys_still_pending(&claims) && !settings.hop_keys_still_pending(&HeaderMap::new()));
    let began = clock.now();
    for waited in [FIRST_SETTINGS_WITHIN, Duration::ZERO] {
        let since = clock.now();
        settings.await_first_settings(clock).await;
        assert_eq!(clock.now().saturating_since(since), waited);
    }
    let settings = OwnerSettings::new();
    let told = async {
        clock.sleep_until(began + FIRST_SETTINGS_WITHIN + Duration::from_secs(1)).await;
        assert!(settings.set(&PodSettings::default()));
    };
    tokio::join!(settings.await_first_settings(clock), told);
    assert_eq!(clock.now().saturating_since(began), FIRST_SETTINGS_WITHIN + Duration::from_secs(1));
    assert!(!settings.hop_keys_still_pending(&claims), "what is known needs no waiting");
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_left_alone_once_everybody_knows_the_owners_word_or_it_is_too_late() {
    let clock = Clock::start();
    let released = PodSettings { departure: Departure::Released, ..PodSettings::default() };
    for (is_told, at_most, expected) in [
        (false, Duration::from_secs(30), Duration::from_secs(30)),
        (true, Duration::from_secs(30), RELEASED_LINGER),
        // Pods of one machine have no route that could be late.
        (false, Duration::ZERO, Duration::ZERO),
        (true, Duration::ZERO, Duration::ZERO),
    ] {
        let settings = OwnerSettings::new();
        if is_told {
            assert!(settings.set(&released));
        }
        let began = clock.now();
        settings.unknown_to_clients(at_most, clock).await;
        assert_eq!(clock.now().saturating_since(began), expected, "{is_told} {at_most:?}");
    }
}

#[tokio::test]
async fn a_late_owner_changes_nothing() {
    let settings = OwnerSettings::new();
    let told = |epoch, counter, routing| PodSettings {
        version: Version { epoch: Epoch(epoch), counter },
        routing,
        ..PodSettings::default()
    };
    assert!(settings.set(&told(2, 1, Routing::ThroughActivator)));
    assert!(!settings.set(&told(1, 9, Routing::Direct)), "of an earlier epoch");
    assert_eq!(settings.routing(), Routing::ThroughActivator);
    assert_eq!(settings.other_than(None).await, Version { epoch: Epoch(2), counter: 1 });
    assert!(settings.set(&told(2, 1, Routing::ThroughActivator)), "a repeat does no harm");
    assert!(settings.set(&told(2, 2, Routing::Direct)));
    assert_eq!(settings.routing(), Routing::Direct);
}
