//! A queue-proxy of Knative's, which has no link: it is asked for its load once a second, and the answer is
//! told as the words of one. (Contract §7.2.)
//!
//! Every pod is asked, without sampling, unless all of its requests come through activators. Whether a pod is
//! ready is Kubernetes' word alone, so the hello says nothing of that. A pod that does not answer is unheard,
//! as one whose link is silent.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Request, StatusCode, header};
use http_body_util::Empty;
use link::{SCRAPE_BYTES_MAX, ScrapedLoad, read_scrape};
use orchestration::{ControlEvent, Priority};
use tokio::net::TcpStream;
use vocabulary::{Load, PodHello, PodName, PodState, PodWord, RequestTimeouts, Sample};

use super::boots::new_boot;
use super::pacer::Pacer;
use super::peer::LinkPeer;
use crate::http_exchange::exchange;

const SECOND: Duration = Duration::from_secs(1);
/// How long a pod may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/protobuf");

/// Asks the pod until the task is ended.
pub(super) async fn keep(peer: LinkPeer, pod: PodName, turns: Pacer) {
    let (link, began) = (peer.target.id, peer.clock.now());
    let mut life = QueueProxyLife::default();
    loop {
        let turn = turns.turn(Priority::Rest).await;
        let answer = tokio::time::timeout(ANSWER_WITHIN, ask(&peer)).await;
        drop(turn);
        let second = peer.clock.now().saturating_since(began).as_secs();
        match answer {
            Ok(Ok(scraped)) => {
                if life.is_new(&scraped) {
                    let word = PodWord::Hello(hello(&pod, second));
                    peer.say(ControlEvent::PodSpoke { link, word }).await;
                }
                // The queue-proxy tells the mean of its last full second.
                let sample = Sample { second: second.saturating_sub(1), load: scraped.load };
                let word = PodWord::Load { sample, usage: None, late_bytes: None };
                peer.say(ControlEvent::PodSpoke { link, word }).await;
            }
            Ok(Err(reason)) => tracing::debug!(%pod, reason, "a pod was asked for its load in vain"),
            Err(_) => tracing::debug!(%pod, "a pod did not answer in time when it was asked for its load"),
        }
        // Counted from the beginning, so that the time of an answer does not add up.
        let passed = peer.clock.now().saturating_since(began).as_secs();
        let next = u32::try_from(passed.saturating_add(1)).unwrap_or(u32::MAX);
        peer.clock.sleep_until(began + SECOND.saturating_mul(next)).await;
    }
}

/// Says of a pod all of whose requests come through activators that it holds none beside theirs. It is not
/// asked: a pod that is silent would count as unheard.
pub(super) async fn keep_unasked(peer: LinkPeer, pod: PodName) {
    let (link, began) = (peer.target.id, peer.clock.now());
    peer.say(ControlEvent::PodSpoke { link, word: PodWord::Hello(hello(&pod, 0)) }).await;
    let mut second = 0_u32;
    loop {
        peer.clock.sleep_until(began + SECOND * (second + 1)).await;
        let sample = Sample { second: second.into(), load: Load::default() };
        let word = PodWord::Load { sample, usage: None, late_bytes: None };
        peer.say(ControlEvent::PodSpoke { link, word }).await;
        second += 1;
    }
}

/// One question, in a connection of its own: a pod may be gone by the next one.
async fn ask(peer: &LinkPeer) -> Result<ScrapedLoad, String> {
    let socket = peer.target.address.socket;
    let stream = TcpStream::connect(socket).await.map_err(|error| error.to_string())?;
    let request = Request::get("/metrics")
        .header(header::HOST, socket.to_string())
        .header(header::ACCEPT, PROTOBUF)
        .header(header::CONNECTION, HeaderValue::from_static("close"))
        .body(Empty::<Bytes>::new())
        .map_err(|error| error.to_string())?;
    let (status, body) = exchange(stream, request, SCRAPE_BYTES_MAX).await?;
    if status != StatusCode::OK {
        return Err(format!("it answered {status}"));
    }
    read_scrape(&body).map_err(|error| error.to_string())
}

fn hello(pod: &PodName, second: u64) -> PodHello {
    PodHello {
        speaks: vocabulary::LinkVersion::CURRENT,
        pod: pod.clone(),
        boot: new_boot(),
        state: PodState::Unheard,
        detail: String::new(),
        container_concurrency: 0,
        timeouts: RequestTimeouts::default(),
        current_second: second,
        history: Vec::new(),
    }
}

/// Tells one life of a queue-proxy from the next by how long it has run.
#[derive(Debug, Default)]
struct QueueProxyLife {
    uptime: Option<f64>,
}

impl QueueProxyLife {
    /// Whether this is the first answer of a life.
    fn is_new(&mut self, scraped: &ScrapedLoad) -> bool {
        let former = self.uptime.replace(scraped.process_uptime);
        former.is_none_or(|former| scraped.process_uptime < former)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_uptime_is_another_life() {
        let mut life = QueueProxyLife::default();
        let mut is_new = |process_uptime| {
            let scraped = ScrapedLoad { reporter: "a".to_owned(), load: Load::default(), process_uptime };
            life.is_new(&scraped)
        };
        assert_eq!([is_new(5.0), is_new(6.0), is_new(1.0), is_new(2.0)], [true, false, true, false]);
    }
}
