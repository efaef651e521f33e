//! Lets only those read the metrics whom the API server lets: a token is reviewed, then the access.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    extract::{Request, State},
    http::{StatusCode, header::AUTHORIZATION},
    middleware::Next,
    response::{IntoResponse, Response},
};
use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::error::chain;

/// How long an answer of the API server holds.
const REMEMBERED: Duration = Duration::from_mins(1);
/// How many answers are remembered; more means that someone is trying tokens.
const MOST: usize = 1000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Allowed,
    Unknown,
    Forbidden,
}

type Known = BTreeMap<Vec<u8>, (Instant, Answer)>;

/// Answers of the API server by the digest of a token and the path.
#[derive(Clone)]
pub(super) struct Guard {
    client: Client,
    known: Arc<Mutex<Known>>,
}

impl Guard {
    pub(super) fn new(client: Client) -> Self {
        Self { client, known: Arc::default() }
    }

    async fn ask(&self, token: &str, path: &str) -> Result<Answer, kube::Error> {
        let key = Sha256::digest(format!("{path}\n{token}")).to_vec();
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        if let Some((_, answer)) = known.filter(|(at, _)| at.elapsed() < REMEMBERED) {
            return Ok(answer);
        }
        let answer = match self.user(token).await? {
            None => Answer::Unknown,
            Some(user) => {
                if self.allowed(user, path).await? {
                    Answer::Allowed
                } else {
                    Answer::Forbidden
                }
            }
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(key, (Instant::now(), answer));
        Ok(answer)
    }

    async fn user(&self, token: &str) -> Result<Option<UserInfo>, kube::Error> {
        let spec = TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        let reviews = Api::<TokenReview>::all(self.client.clone());
        let status = reviews.create(&PostParams::default(), &review).await?.status.unwrap_or_default();
        Ok(status.user.filter(|_| status.authenticated == Some(true)))
    }

    async fn allowed(&self, user: UserInfo, path: &str) -> Result<bool, kube::Error> {
        let spec = SubjectAccessReviewSpec {
            user: user.username,
            groups: user.groups,
            uid: user.uid,
            extra: user.extra,
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some(path.to_owned()),
                verb: Some("get".to_owned()),
            }),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let reviews = Api::<SubjectAccessReview>::all(self.client.clone());
        Ok(reviews.create(&PostParams::default(), &review).await?.status.is_some_and(|status| status.allowed))
    }
}

/// The middleware: the request goes on only if the API server says so.
pub(super) async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some(token) = header.and_then(|value| value.strip_prefix("Bearer ")) else {
        return (StatusCode::UNAUTHORIZED, "a bearer token is needed\n").into_response();
    };
    match guard.ask(token.trim(), request.uri().path()).await {
        Ok(Answer::Allowed) => next.run(request).await,
        Ok(Answer::Unknown) => (StatusCode::UNAUTHORIZED, "the token is not known\n").into_response(),
        Ok(Answer::Forbidden) => (StatusCode::FORBIDDEN, "this user may not get this path\n").into_response(),
        Err(error) => {
            tracing::warn!(
                error = chain(&error),
                "failed to ask the API server about a reader of the metrics"
            );
            (StatusCode::INTERNAL_SERVER_ERROR, "the API server could not be asked\n").into_response()
        }
    }
}
