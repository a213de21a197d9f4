//! tonic's client before a proxy: see tests/tests/peers/clients.rs for what each line says.
//! ebb-interop-tonic PORT HOST h2c BYTES

use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status, Streaming};

type Checked = Result<(), Box<dyn std::error::Error>>;

const PIECE: u64 = 64 * 1024;

/// A message that cannot be sent, upon which the stream is reset. (A client that only drops the answer goes
/// on to send: this client resets a stream when neither half is held.)
const LEAVE: Bytes = Bytes::new();

/// Encodes and decodes messages as plain bytes.
#[derive(Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        if item == LEAVE {
            return Err(Status::cancelled("it leaves"));
        }
        into.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// The n-th byte of every body: no piece of it looks like another.
fn fill(at: u64, length: u64) -> Bytes {
    (at..at + length).map(|at| (at ^ (at >> 8)).to_le_bytes()[0]).collect()
}

async fn stream(
    client: &mut Grpc<Channel>,
    messages: impl tokio_stream::Stream<Item = Bytes> + Send + 'static,
) -> Result<Response<Streaming<Bytes>>, Box<dyn std::error::Error>> {
    client.ready().await?;
    let path = PathAndQuery::from_static("/stream");
    let mut request = Request::new(messages);
    // A client of gRPC sends no trailers. What it asks for in this header, the app says in its own.
    request.metadata_mut().insert("x-sent", MetadataValue::from_static("7"));
    Ok(client.streaming(request, path, Raw).await?)
}

async fn body(client: &mut Grpc<Channel>, size: u64) -> Checked {
    let pieces = (0..size).step_by(PIECE as usize).map(move |at| fill(at, PIECE.min(size - at)));
    let mut answer = stream(client, tokio_stream::iter(pieces)).await?.into_inner();
    let mut at = 0;
    while let Some(piece) = answer.next().await {
        let piece = piece?;
        assert!(piece == fill(at, piece.len() as u64), "byte {at} or one behind it is another");
        at += piece.len() as u64;
    }
    assert_eq!(at, size, "so many bytes came back");
    println!("body");
    let trailers = answer.trailers().await?.ok_or("there are no trailers")?;
    assert!(trailers.get("x-echoed").is_some_and(|echoed| echoed == "7"), "{trailers:?}");
    println!("trailers");
    Ok(())
}

async fn duplex(client: &mut Grpc<Channel>) -> Checked {
    let (sender, receiver) = mpsc::channel(1);
    sender.send(fill(0, 100)).await?;
    let mut answer = stream(client, ReceiverStream::new(receiver)).await?.into_inner();
    for turn in 0..20 {
        let piece = answer.next().await.ok_or("it ends")??;
        assert!(piece == fill(turn, 100), "turn {turn} is another");
        sender.send(fill(turn + 1, 100)).await?;
    }
    println!("duplex");
    Ok(())
}

async fn cancel(client: &mut Grpc<Channel>) -> Checked {
    let (sender, receiver) = mpsc::channel(1);
    sender.send(fill(0, 100)).await?;
    let mut answer = stream(client, ReceiverStream::new(receiver)).await?.into_inner();
    answer.next().await.ok_or("it ends")??;
    until_in_flight(client, "2").await?;
    sender.send(LEAVE).await?;
    // The next one is served, and sooner or later alone.
    until_in_flight(client, "1").await?;
    println!("cancel");
    Ok(())
}

async fn until_in_flight(client: &mut Grpc<Channel>, number: &str) -> Checked {
    while in_flight(client).await? != number {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// How many requests the app holds, this one included.
async fn in_flight(client: &mut Grpc<Channel>) -> Result<String, Box<dyn std::error::Error>> {
    let answer = stream(client, tokio_stream::once(fill(0, 5))).await?;
    let number = answer.metadata().get("x-in-flight").ok_or("it says no number")?.to_str()?.to_owned();
    let mut answer = answer.into_inner();
    while let Some(piece) = answer.next().await {
        piece?;
    }
    Ok(number)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Checked {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, host, _, size] = &arguments[..] else { return Err("PORT HOST h2c BYTES".into()) };
    let origin = format!("http://{host}").parse()?;
    let channel = Endpoint::from_shared(format!("http://127.0.0.1:{port}"))?.origin(origin).connect().await?;
    let mut client = Grpc::new(channel);
    body(&mut client, size.parse()?).await?;
    duplex(&mut client).await?;
    cancel(&mut client).await
}
