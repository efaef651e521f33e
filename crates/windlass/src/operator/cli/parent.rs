//! The process that started this one, as far as it matters: whether it is still there.

use std::io;

use tokio::sync::oneshot;

/// Waits until stdin ends: whoever holds its other end has closed it, or is gone.
pub(super) async fn gone() {
    let (sender, ended) = oneshot::channel();
    // A thread of its own, since a read of stdin cannot be called off. It ends with the process.
    let read = move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = sender.send(());
    };
    if let Err(error) = std::thread::Builder::new().name("stdin".into()).spawn(read) {
        tracing::warn!(%error, "failed to watch stdin, run until a signal");
    }
    if ended.await.is_err() {
        std::future::pending::<()>().await;
    }
    tracing::info!("stdin has ended, shutting down");
}
