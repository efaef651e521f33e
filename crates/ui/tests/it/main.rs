//! The page on the embedded cluster: what it shows, to whom, and when.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod browser;
mod faults;
mod history;
mod objects;
mod runs;
mod security;
// It needs util-linux for a terminal of its own.
#[cfg(target_os = "linux")]
mod terminal;

use browser::Browser;
use windlass_cluster::Cluster;
use windlass_ui::{Options, Page};

/// A cluster and its page.
struct World {
    cluster: Cluster,
    browser: Browser,
}

impl World {
    /// With everything that a page can do.
    async fn start() -> Self {
        Self::with(Options { edit: true, faults: true, ..Options::default() }).await
    }

    async fn with(options: Options) -> Self {
        let cluster = Cluster::start().await.unwrap();
        let page = Page::bind(0, cluster.client(), options).await.unwrap();
        let browser = Browser::new(&page.url());
        tokio::spawn(page.serve(std::future::pending()));
        Self { cluster, browser }
    }
}
