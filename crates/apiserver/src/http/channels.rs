//! A WebSocket as Kubernetes divides it: the first byte of each message names a channel.
//!
//! ```text
//! 0 stdin ->   <- 1 stdout   <- 2 stderr   <- 3 how it ended, as a Status   4 size of the terminal ->
//! ```
//!
//! A connection and a running session enter; what was said and typed goes to and fro until one of them ends. With
//! version 5 of the protocol the client can end a single channel: 255 and the channel's number.

use std::{future::Future, time::Duration};

use bytes::{BufMut, Bytes, BytesMut};
use futures::{SinkExt, StreamExt};
use http::{HeaderMap, header};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        self, Message,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

use super::guard::unwound;
use crate::containers::{Outcome, Stream};

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ENDED: u8 = 3;
/// Ends the channel that the next byte names.
const CLOSE: u8 = 255;

/// The longest message that a client may send, as in the real server; most send no more than 32 KiB.
const LIMIT: usize = 32 * 1024 * 1024;

/// How many messages wait for a program that does not read. Then the client waits too.
const WAITING: usize = 16;

/// How long nothing may happen: a client that is gone without a word is noticed by nothing else.
const IDLE: Duration = Duration::from_hours(4);

/// How long a client may take to say goodbye.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// The versions of the protocol that are spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    V5,
    V4,
}

impl Protocol {
    pub(super) const NAMES: [&str; 2] = ["v5.channel.k8s.io", "v4.channel.k8s.io"];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::V5 => Self::NAMES[0],
            Self::V4 => Self::NAMES[1],
        }
    }

    /// The first that the client names and that is spoken here.
    pub(super) fn choose(headers: &HeaderMap) -> Option<Self> {
        let lists = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
        let mut named = lists.filter_map(|list| list.to_str().ok()).flat_map(|list| list.split(','));
        named.find_map(|name| [Self::V5, Self::V4].into_iter().find(|one| one.name() == name.trim()))
    }
}

/// The server's side of the channels.
#[derive(Debug)]
pub(super) struct Channels {
    pub(super) protocol: Protocol,
    /// Where to put what the client types, as long as it may.
    pub(super) stdin: Option<mpsc::Sender<Bytes>>,
    /// What the session says.
    pub(super) said: mpsc::Receiver<(Stream, Bytes)>,
    /// Whether the client wants to hear it.
    pub(super) stdout: bool,
    pub(super) stderr: bool,
}

/// Both ends of a client's input, if it wants one.
pub(super) fn input(wanted: bool) -> (Option<mpsc::Sender<Bytes>>, Option<mpsc::Receiver<Bytes>>) {
    let (sender, receiver) = mpsc::channel(WAITING);
    if wanted { (Some(sender), Some(receiver)) } else { (None, None) }
}

/// Serves a session until it ends or its client leaves.
pub(super) async fn serve(upgrade: OnUpgrade, channels: Channels, session: impl Future<Output = Outcome>) {
    let connection = match upgrade.await {
        Ok(connection) => TokioIo::new(connection),
        Err(error) => return tracing::debug!(%error, "a client left before its session began"),
    };
    let limits = WebSocketConfig::default().max_message_size(Some(LIMIT)).max_frame_size(Some(LIMIT));
    let socket = WebSocketStream::from_raw_socket(connection, Role::Server, Some(limits)).await;
    let mut conversation = Conversation { socket, channels, typed: None };
    if conversation.greet().await.is_err() {
        return;
    }
    if let Some(outcome) = conversation.talk(session).await {
        conversation.end(&outcome).await;
    }
}

struct Conversation {
    socket: WebSocketStream<TokioIo<Upgraded>>,
    channels: Channels,
    /// What was typed and not taken yet: nothing more is read until it is.
    typed: Option<Bytes>,
}

impl Conversation {
    /// Tells the client that it is inside, by saying nothing on the first channel that it hears.
    async fn greet(&mut self) -> Result<(), tungstenite::Error> {
        let first = match &self.channels {
            Channels { stdout: true, .. } => STDOUT,
            Channels { stderr: true, .. } => STDERR,
            _ => ENDED,
        };
        self.send(first, &[]).await
    }

    /// Passes on what is said and typed. `None` when the client has left.
    async fn talk(&mut self, session: impl Future<Output = Outcome>) -> Option<Outcome> {
        let session = unwound(async { Ok(session.await) });
        tokio::pin!(session);
        loop {
            tokio::select! {
                biased;
                Some((stream, bytes)) = self.channels.said.recv() => self.say(stream, &bytes).await?,
                outcome = &mut session => {
                    while let Ok((stream, bytes)) = self.channels.said.try_recv() {
                        self.say(stream, &bytes).await?;
                    }
                    return Some(outcome.unwrap_or_else(|error| Outcome::Failed(error.message)));
                }
                message = self.socket.next(), if self.typed.is_none() => self.hear(message?.ok()?)?,
                room = room(self.channels.stdin.clone()), if self.typed.is_some() => {
                    match (room, self.typed.take()) {
                        (Some(room), Some(typed)) => drop(room.send(typed)),
                        _ => self.channels.stdin = None,
                    }
                }
                () = tokio::time::sleep(IDLE) => return None,
            }
        }
    }

    /// A message of the client. `None` when it was the last.
    fn hear(&mut self, message: Message) -> Option<()> {
        let data = match message {
            Message::Binary(data) => data,
            Message::Text(text) => text.into(),
            Message::Close(_) => return None,
            _ => return Some(()),
        };
        match *data {
            [CLOSE, STDIN] if self.channels.protocol == Protocol::V5 => self.channels.stdin = None,
            [STDIN, _, ..] if self.channels.stdin.is_some() => self.typed = Some(data.slice(1..)),
            // The size of a terminal changes nothing here, and other channels are not the client's.
            _ => {}
        }
        Some(())
    }

    /// Says something to a client that wants to hear it. `None` when it will never.
    async fn say(&mut self, stream: Stream, bytes: &[u8]) -> Option<()> {
        let channel = match stream {
            Stream::Stdout if self.channels.stdout => STDOUT,
            Stream::Stderr if self.channels.stderr => STDERR,
            _ => return Some(()),
        };
        tokio::time::timeout(IDLE, self.send(channel, bytes)).await.ok()?.ok()
    }

    async fn send(&mut self, channel: u8, bytes: &[u8]) -> Result<(), tungstenite::Error> {
        let mut message = BytesMut::with_capacity(bytes.len() + 1);
        message.put_u8(channel);
        message.put_slice(bytes);
        self.socket.send(Message::Binary(message.freeze())).await
    }

    /// Tells how it ended, and waits a moment for the client to leave: a connection that is cut may lose the end.
    async fn end(mut self, outcome: &Outcome) {
        let status = serde_json::to_vec(&SessionStatus::of(outcome)).expect("a Status must be JSON");
        let normal = CloseFrame { code: CloseCode::Normal, reason: "".into() };
        let goodbye = async {
            self.send(ENDED, &status).await?;
            self.socket.close(Some(normal)).await?;
            while self.socket.next().await.transpose()?.is_some() {}
            Ok::<_, tungstenite::Error>(())
        };
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, goodbye).await;
    }
}

/// Room for what was typed; `None` where nobody will take it any more.
async fn room(stdin: Option<mpsc::Sender<Bytes>>) -> Option<mpsc::OwnedPermit<Bytes>> {
    stdin?.reserve_owned().await.ok()
}

/// How a session ended, in the order in which a kubelet writes it.
#[derive(Debug, Serialize)]
struct SessionStatus {
    metadata: Nothing,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u16>,
}

#[derive(Debug, Serialize)]
struct Nothing {}

#[derive(Debug, Serialize)]
struct Details {
    causes: [Cause; 1],
}

#[derive(Debug, Serialize)]
struct Cause {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    message: String,
}

impl SessionStatus {
    fn of(outcome: &Outcome) -> Self {
        let failure = |message, reason, cause, code| Self {
            metadata: Nothing {},
            status: "Failure",
            message: Some(message),
            reason: Some(reason),
            details: Some(Details { causes: [cause] }),
            code,
        };
        match outcome {
            Outcome::Exited(0) => Self {
                metadata: Nothing {},
                status: "Success",
                message: None,
                reason: None,
                details: None,
                code: None,
            },
            Outcome::Exited(code) => {
                let message = format!(
                    "command terminated with non-zero exit code: command terminated with exit code {code}"
                );
                let cause = Cause { reason: Some("ExitCode"), message: code.to_string() };
                failure(message, "NonZeroExitCode", cause, None)
            }
            Outcome::Failed(why) => {
                let why = format!("error executing command in container: {why}");
                let cause = Cause { reason: None, message: why.clone() };
                failure(format!("Internal error occurred: {why}"), "InternalError", cause, Some(500))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_told_as_a_kubelet_tells_it() {
        let told = |outcome| serde_json::to_string(&SessionStatus::of(&outcome)).unwrap();
        assert_eq!(told(Outcome::Exited(0)), r#"{"metadata":{},"status":"Success"}"#);
        assert_eq!(
            told(Outcome::Exited(7)),
            r#"{"metadata":{},"status":"Failure","message":"command terminated with non-zero exit code: command terminated with exit code 7","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}"#
        );
        assert_eq!(
            told(Outcome::Failed("no".into())),
            r#"{"metadata":{},"status":"Failure","message":"Internal error occurred: error executing command in container: no","reason":"InternalError","details":{"causes":[{"message":"error executing command in container: no"}]},"code":500}"#
        );
    }
}
