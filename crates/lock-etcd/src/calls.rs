//! Requests over a connection.

use prost::Message;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

/// Makes a server refuse a request while it knows no leader, instead of keeping it.
const NEEDS_LEADER: &str = "hasleader";
/// What a request names the user by.
const TOKEN: &str = "token";
/// How long an answer may be: as etcd's own clients have it. The default of 4 MB is too little for the list of a long queue.
const ANSWER_MAX: usize = i32::MAX as usize;

/// What a login was answered by.
pub(crate) type Token = MetadataValue<Ascii>;

/// Sends a request.
pub(crate) async fn ask<Q, A>(
    channel: Channel,
    method: &'static str,
    message: Q,
    token: Option<Token>,
) -> Result<A, Status>
where
    Q: Message + Send + Sync + 'static,
    A: Message + Default + Send + Sync + 'static,
{
    let mut grpc = ready(channel).await?;
    let codec: ProstCodec<Q, A> = ProstCodec::default();
    let answer = grpc.unary(request(message, token), PathAndQuery::from_static(method), codec).await;
    Ok(answer?.into_inner())
}

/// Opens a stream of requests and answers.
pub(crate) async fn stream<Q, A>(
    channel: Channel,
    method: &'static str,
    messages: impl futures_util::Stream<Item = Q> + Send + 'static,
    token: Option<Token>,
) -> Result<Streaming<A>, Status>
where
    Q: Message + Send + Sync + 'static,
    A: Message + Default + Send + Sync + 'static,
{
    let mut grpc = ready(channel).await?;
    let codec: ProstCodec<Q, A> = ProstCodec::default();
    let answers = grpc.streaming(request(messages, token), PathAndQuery::from_static(method), codec).await;
    Ok(answers?.into_inner())
}

async fn ready(channel: Channel) -> Result<Grpc<Channel>, Status> {
    let mut grpc = Grpc::new(channel).max_decoding_message_size(ANSWER_MAX);
    grpc.ready().await.map_err(|failure| Status::unavailable(failure.to_string()))?;
    Ok(grpc)
}

fn request<T>(message: T, token: Option<Token>) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert(NEEDS_LEADER, MetadataValue::from_static("true"));
    if let Some(token) = token {
        request.metadata_mut().insert(TOKEN, token);
    }
    request
}
