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
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status, Streaming};

type Checked = Result<(), Box<dyn std::error::Error>>;

const PIECE: u64 = 64 * 1024;

/// Messages are bytes.
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
    Ok(client.streaming(Request::new(messages), path, Raw).await?)
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
    // An answer without them would have been an error.
    answer.trailers().await?;
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
    let endless = tokio_stream::iter(std::iter::repeat(fill(0, PIECE)));
    let mut answer = stream(client, endless).await?.into_inner();
    answer.next().await.ok_or("it ends")??;
    drop(answer);
    // The next one is served, and sooner or later alone.
    loop {
        let answer = stream(client, tokio_stream::once(fill(0, 5))).await?;
        let is_alone = answer.metadata().get("x-in-flight").is_some_and(|number| number == "1");
        let mut answer = answer.into_inner();
        while let Some(piece) = answer.next().await {
            piece?;
        }
        if is_alone {
            println!("cancel");
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
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
