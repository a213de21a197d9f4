//! When another process takes everything over, or did before: what of the parts goes, and what stays until it
//! has answered.

use std::time::Duration;

use autoscaler::Autoscaler;
use axum::Router;
use axum::http::StatusCode;
use axum::http::header::CONNECTION;
use futures_util::future::join_all;
use platform_local::HandoverDecision;
use tokio::sync::oneshot;

use super::{Entrances, Parts};
use crate::up::api::ApiServer;
use crate::up::take_over::{HandOverOffer, HandOverOrder, Offer};

/// How long the successor may take from the offer to its acceptance.
const ACCEPTANCE_PATIENCE: Duration = Duration::from_secs(20);

/// What became of an order to hand everything over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::up) enum HandOverEnd {
    /// The other process has taken everything over.
    Over,
    /// Nothing was handed over, and this process goes on.
    Nothing,
}

/// An offer that was made.
struct StandingOffer {
    decision: HandoverDecision,
    prepared: oneshot::Receiver<()>,
    go: oneshot::Sender<()>,
    sent: oneshot::Receiver<()>,
}

impl Parts {
    /// Hands everything over, or goes on as before.
    pub(in crate::up) async fn hand_over(&mut self, order: HandOverOrder, api: &ApiServer) -> HandOverEnd {
        let HandOverOrder(answer) = order;
        let (offering, offered) = match self.offer(api).await {
            Ok(offer) => offer,
            Err(reason) => {
                let _ = answer.send(Err(reason));
                return HandOverEnd::Nothing;
            }
        };
        let _ = answer.send(Ok(offering));
        self.conclude(offered).await
    }

    async fn offer(&self, api: &ApiServer) -> Result<(HandOverOffer, StandingOffer), String> {
        let lent = |error: std::io::Error| format!("lending the listening sockets: {error}");
        let Entrances { requests, tls, front_door: _ } = &self.starter.entrances;
        let requests = requests.try_clone().map_err(lent)?;
        let tls = tls.as_ref().map(|tls| tls.socket.try_clone()).transpose().map_err(lent)?;
        let (handover, decision) = self.platform.hand_over().await?;
        let (activators, started) = (self.activators.facts(), self.starter.started);
        let mut offer = Offer::new(activators, started, handover.record, api.access.token());
        let mut descriptors = vec![requests.into(), api.socket.try_clone().map_err(lent)?];
        descriptors.extend(handover.descriptors);
        if let Some(tls) = tls {
            offer.adds_tls();
            // Behind the platform's, from where the other side takes it.
            descriptors.push(tls.into());
        }
        let (prepared_in, prepared) = oneshot::channel();
        let (go_in, go) = oneshot::channel();
        let (sent_in, sent) = oneshot::channel();
        let offering = HandOverOffer { offer, descriptors, prepared: prepared_in, go, sent: sent_in };
        Ok((offering, StandingOffer { decision, prepared, go: go_in, sent }))
    }

    /// The autoscalers end before the last message, so that there are never two that give orders.
    async fn conclude(&mut self, offered: StandingOffer) -> HandOverEnd {
        let StandingOffer { decision, prepared, go, sent } = offered;
        let accepted = tokio::time::timeout(ACCEPTANCE_PATIENCE, prepared).await;
        // The supervisor has a patience of its own. If that has ended, its pods go on already, and the
        // autoscalers have to go on, too.
        if !matches!(accepted, Ok(Ok(()))) || !decision.is_open() {
            return HandOverEnd::Nothing;
        }
        let autoscalers = std::mem::take(&mut self.autoscalers);
        let number = autoscalers.len();
        join_all(autoscalers.into_iter().map(Autoscaler::stop)).await;
        self.histories.leave();
        let _ = go.send(());
        if sent.await.is_ok() {
            decision.given();
            return HandOverEnd::Over;
        }
        // The supervisor goes on first: until this it stands still, and carries out no order of the new
        // autoscalers.
        drop(decision);
        self.histories.resume();
        self.start_autoscalers(number).await;
        HandOverEnd::Nothing
    }

    /// Everything was handed over: answers the requests that are held, and accepts nothing more.
    pub(in crate::up) async fn finish(self) {
        // A client that still has a connection to the API is to make another, which the successor accepts.
        self.api.replace(Router::new().fallback(|| async {
            (StatusCode::SERVICE_UNAVAILABLE, [(CONNECTION, "close")], "another `ebb up` has taken over\n")
        }));
        self.answered().await;
    }
}
