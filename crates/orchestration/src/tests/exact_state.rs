//! What of the state of the control loop a record may have.

use std::sync::Arc;

use vocabulary::{HopKey, LinkToken, PodName, WaitingPage};

use super::world::{World, name};
use crate::state::ControlState;
use crate::{ExactState, PlatformFact, PodFailure, RevisionFacts};

fn recorded(state: ExactState) -> ExactState {
    state.into_recorded(HopKey::clone, LinkToken::clone)
}

fn has(state: &ExactState, text: &str) -> bool {
    let bytes = postcard::to_stdvec(state).expect("a state can be written");
    String::from_utf8_lossy(&bytes).contains(text)
}

/// They may hold anything that an app knows.
#[test]
fn lines_that_an_app_printed_are_in_no_record() {
    let mut world = World::with_activators(&["a"]);
    let failure = PodFailure {
        pod: PodName::new("p"),
        at: world.now,
        reason: "the app exited with code 3".to_owned(),
        last_lines: vec!["the password is swordfish".to_owned()],
    };
    world.fact(PlatformFact::PodFailed { revision: name(), failure });
    let state = world.orchestrator.exact_state();
    assert!(has(&state, "swordfish"), "a state has the failure");
    let recorded = recorded(state);
    assert!(!has(&recorded, "swordfish") && has(&recorded, "exited with code 3"));
}

/// The facts behind the state say that there is no page, and must not be news.
#[test]
fn a_recorded_state_has_no_waiting_page() {
    let mut world = World::with_activators(&["a"]);
    let pages = |state: &ControlState| {
        let (_, record) = state.registry.named(&name()).expect("it is there");
        let assignment = record.assignment.as_ref().expect("an activator was told of it");
        [record.facts.waiting_page.clone(), assignment.waiting_page.clone()]
    };
    let state = world.orchestrator.exact_state().into_state();
    let (_, record) = state.registry.named(&name()).expect("it is there");
    let facts = RevisionFacts { waiting_page: WaitingPage::Auto, ..RevisionFacts::clone(&record.facts) };
    world.fact(PlatformFact::RevisionChanged(Arc::new(facts)));
    let state = world.orchestrator.exact_state();
    assert_eq!(pages(&state.clone().into_state()), [WaitingPage::Auto, WaitingPage::Auto]);
    assert_eq!(pages(&recorded(state).into_state()), [WaitingPage::Off, WaitingPage::Off]);
}
