//! WebSockets: a connection that stops speaking HTTP is carried byte for byte.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tests::Ebb;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::protocols::world::{ROUTINGS, cold, warm, within};

pub(crate) async fn connect(ebb: &Ebb, host: &str) -> WebSocketStream<TcpStream> {
    let stream = TcpStream::connect(ebb.requests).await.expect("ebb listens");
    let url = format!("ws://{host}/websocket");
    let shaken = within("the switch of protocols", tokio_tungstenite::client_async(url, stream)).await;
    let (socket, response) = shaken.expect("the app switches protocols");
    assert_eq!(response.status(), 101);
    socket
}

pub(crate) async fn expect_echo(socket: &mut WebSocketStream<TcpStream>, message: Message) {
    socket.send(message.clone()).await.expect("the socket is open");
    let echoed = within("an echo", socket.next()).await.expect("the socket is open");
    assert!(
        echoed.expect("the socket is whole") == message,
        "a message of {} bytes came back changed",
        message.len()
    );
}

/// The closing handshake reaches both ends.
async fn close(mut socket: WebSocketStream<TcpStream>) {
    socket.close(None).await.expect("the socket is open");
    let last = within("the app's close", socket.next()).await;
    assert!(matches!(last, Some(Ok(Message::Close(_)))), "{last:?}");
    let end = within("the end", socket.next()).await;
    assert!(end.is_none(), "{end:?}");
}

#[tokio::test]
async fn a_websocket_wakes_a_revision_from_zero_and_echoes() {
    let ebb = cold(|service| service).await;
    for routing in ROUTINGS {
        let mut socket = connect(&ebb, &routing.host()).await;
        for message in ["one", "two", ""] {
            expect_echo(&mut socket, Message::text(message)).await;
        }
        expect_echo(&mut socket, Message::binary(vec![0xa5; 1024 * 1024])).await;
        close(socket).await;
    }
}

/// Vector O9 of the data plane, turned round: switching protocols is the start of the response, so that limit
/// is met.
#[tokio::test]
async fn a_websocket_outlives_the_limit_for_the_start_of_a_response() {
    let ebb = warm(|service| service.spec("responseStartTimeoutSeconds: 1")).await;
    for routing in ROUTINGS {
        let mut socket = connect(&ebb, &routing.host()).await;
        expect_echo(&mut socket, Message::text("before")).await;
        tokio::time::sleep(Duration::from_millis(1300)).await;
        expect_echo(&mut socket, Message::text("after")).await;
        close(socket).await;
    }
}
