//! Who runs the containers of Pods, for those who look into one with `exec` or `attach`.
//!
//! The server finds the Pod, asks whether it may be entered, and speaks with the client; what happens inside of a
//! container is somebody else's business. A [`Session`] enters, an [`Outcome`] leaves.

use std::{fmt, future::Future, pin::Pin};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::mpsc;

/// Somebody who runs containers.
pub trait Containers: fmt::Debug + Send + Sync {
    /// Runs a command beside a running container, or attaches to the container itself, until it ends.
    ///
    /// The future is dropped when the client leaves first.
    fn run(&self, session: Session) -> Pin<Box<dyn Future<Output = Outcome> + Send>>;
}

/// A client inside of a container.
#[derive(Debug)]
pub struct Session {
    /// The Pod.
    pub pod: Value,
    /// The name of its container, which runs.
    pub container: String,
    /// What to run; `None` attaches to what runs already.
    pub command: Option<Vec<String>>,
    /// Whether the client is a terminal.
    pub tty: bool,
    /// What the client types, if it does. It ends when the client says so.
    pub stdin: Option<mpsc::Receiver<Bytes>>,
    /// What the client hears.
    pub output: Output,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// With an exit code.
    Exited(i32),
    /// Otherwise; the text says why.
    Failed(String),
}

/// One of the two ways to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Where the output of a session goes.
#[derive(Debug, Clone)]
pub struct Output(mpsc::Sender<(Stream, Bytes)>);

impl Output {
    /// An output and the other end of it. Whoever writes waits while nobody reads.
    pub fn channel() -> (Self, mpsc::Receiver<(Stream, Bytes)>) {
        let (sender, receiver) = mpsc::channel(16);
        (Self(sender), receiver)
    }

    /// Says something. What nobody can hear any more is lost.
    pub async fn write(&self, stream: Stream, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        if !bytes.is_empty() {
            let _ = self.0.send((stream, bytes)).await;
        }
    }
}
