//! One tokio connection, greeted and ready for requests.

use std::convert::Infallible;
use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ProtocolVersion, PushInfo, PushKind, RedisResult, Value};

use super::batcher::{Batcher, Sharing};
use super::silence::Silence;
use crate::channel::{Channel, Subscription};
use crate::classify::classify;
use crate::connect::{CONNECT_WITHIN, connecting, knows_no_resp3, speaking, tells, tuned};
use crate::deployment::Deployment;
use crate::failure::Failure;
use crate::server::greeting::{Met, greeting, meet};
use crate::server::server_info::ServerInfo;
use crate::target::Target;

/// How many writes may wait for the socket.
const QUEUE: usize = 64;

/// A connection whose server was greeted, and its counter verified.
pub(crate) struct Live {
    pub(crate) batcher: Batcher,
    pub(crate) server_info: ServerInfo,
    pub(crate) subscription: Option<Subscription>,
    /// A connection is kept at first if a request times out: its replies stay in step, and a release sent on it follows the acquire that
    /// it undoes.
    pub(crate) silence: Arc<Silence>,
}

/// Connects to a server, and greets it.
pub(crate) async fn connect_to(target: &Target, channel: Option<&Arc<Channel>>) -> Result<Live, Failure> {
    let server = target.shown();
    let failed = |error| classify(connecting(&server, CONNECT_WITHIN), &error);
    let silence = Arc::new(Silence::default());
    let client = tuned(&target.client).map_err(failed)?;
    let (mut connection, subscription) = open(&client, channel, &silence).await.map_err(failed)?;
    let greeted = greeting(target.deployment).query_async(&mut connection).await.map_err(failed)?;
    let Met { server_info, preparation } = meet(target, greeted)?;
    if let Some(preparation) = preparation {
        preparation.exec_async(&mut connection).await.map_err(failed)?;
    }
    let sharing = if target.deployment == Deployment::Quorum { Sharing::AT_A_NODE } else { Sharing::AT_A_SERVER };
    Ok(Live { batcher: Batcher::new(connection, sharing), server_info, subscription, silence })
}

/// Opens a connection, and subscribes to the channel if the server can push messages on this connection.
async fn open(
    client: &Client,
    channel: Option<&Arc<Channel>>,
    silence: &Arc<Silence>,
) -> RedisResult<(MultiplexedConnection, Option<Subscription>)> {
    // Every call has our own deadline; a second one from the library would only hide which of them expired.
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(QUEUE);
    let quiet =
        async || speaking(client, ProtocolVersion::RESP2)?.get_multiplexed_async_connection_with_config(&config).await;
    let Some(channel) = channel.filter(|_| tells(client)) else { return Ok((quiet().await?, None)) };
    let subscription = channel.subscribing();
    let on_push = on_push(Arc::clone(channel), subscription, Arc::clone(silence));
    let telling = config.clone().set_push_sender(on_push);
    let mut connection = match client.get_multiplexed_async_connection_with_config(&telling).await {
        Err(error) if knows_no_resp3(&error) => return Ok((quiet().await?, None)),
        outcome => outcome?,
    };
    // If it may not subscribe, waiters have to poll, and holders learn of a revocation when they renew.
    let is_told = subscribed(connection.subscribe(channel.name()).await)?;
    if is_told {
        subscribed(connection.subscribe(Channel::ALL).await)?;
    }
    Ok((connection, is_told.then_some(subscription)))
}

/// Whether the server took a subscription, or refused it.
fn subscribed(outcome: RedisResult<()>) -> RedisResult<bool> {
    match outcome {
        Ok(()) => Ok(true),
        Err(error) if error.clone().into_server_errors().is_some() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Receives what the server pushes, on the connection's own task.
fn on_push(
    channel: Arc<Channel>,
    subscription: Subscription,
    silence: Arc<Silence>,
) -> impl Fn(PushInfo) -> Result<(), Infallible> + Send + Sync + 'static {
    move |told| {
        match (told.kind, told.data.as_slice()) {
            (PushKind::Message, [_channel, Value::BulkString(message)]) => channel.receive(message),
            (PushKind::Disconnection, _) => {
                silence.end();
                channel.closed(subscription);
            }
            _ => {}
        }
        Ok(())
    }
}
