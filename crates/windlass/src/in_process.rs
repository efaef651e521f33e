//! A client for an API server in the same process, whose silence means that nothing happens.
//!
//! Enters: a client. Leaves: one whose watches last a month and bring no bookmarks. Over a network short watches and
//! bookmarks are how a dead connection is noticed; here they would only wake everybody up. On tokio's paused clock, where nothing else
//! happens in an idle hour, they would be all that it costs.

use std::time::Duration;

use http::{Request, Uri, uri::PathAndQuery};
use kube::{Client, client::Body};
use tower::service_fn;

/// How long a watch lasts.
pub(crate) const LONGEST: Duration = Duration::from_hours(24 * 30);

/// The client of an API server in the same process, with watches that last a day and bring no bookmarks.
pub fn in_process(client: Client) -> Client {
    let namespace = client.default_namespace().to_owned();
    let service = service_fn(move |mut request: Request<Body>| {
        if let Some(uri) = lengthened(request.uri()) {
            *request.uri_mut() = uri;
        }
        let client = client.clone();
        async move { client.send(request).await }
    });
    Client::new(service, namespace)
}

/// The URI of a watch that lasts longer; `None` for anything else.
fn lengthened(uri: &Uri) -> Option<Uri> {
    let parameters: Vec<&str> = uri.query()?.split('&').collect();
    // Whoever wants the state as events waits for the bookmark behind it.
    if !parameters.contains(&"watch=true") || parameters.contains(&"sendInitialEvents=true") {
        return None;
    }
    let seconds = format!("timeoutSeconds={}", LONGEST.as_secs());
    let ours = |one: &&str| !one.starts_with("timeoutSeconds=") && !one.starts_with("allowWatchBookmarks=");
    let query: Vec<&str> = parameters.into_iter().filter(ours).chain([seconds.as_str()]).collect();
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = PathAndQuery::try_from(format!("{}?{}", uri.path(), query.join("&"))).ok();
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_lasts_a_month_and_brings_no_bookmarks() {
        let watch = "/api/v1/pods?&watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=7";
        let longer = lengthened(&Uri::from_static(watch)).map(|uri| uri.to_string());
        assert_eq!(
            longer.as_deref(),
            Some("/api/v1/pods?&watch=true&resourceVersion=7&timeoutSeconds=2592000")
        );
    }

    #[test]
    fn anything_else_stays_as_it_is() {
        for other in [
            "/api/v1/pods",
            "/api/v1/pods?limit=500&timeoutSeconds=290",
            "/api/v1/pods?watch=true&sendInitialEvents=true&allowWatchBookmarks=true",
        ] {
            assert_eq!(lengthened(&Uri::from_static(other)), None, "{other}");
        }
    }
}
