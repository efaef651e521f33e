//! The credentials of a Database: what its Secret says is what the server accepts, whoever has changed the Secret.
//!
//! The server's Pod follows the Secret by itself: a container of it has the Secret mounted and alters the roles over the
//! local socket (`scripts/passwords.sh`). The operator does the rest:
//!
//! 1. it makes the Secret if there is none, and keeps its `uri` in line with its `password`;
//! 2. it notes on the Pod that the Secret has changed, on which the kubelet looks at once, not within a minute or two;
//! 3. it lets a Job log in with what the Secret says. Only what was seen to work is told as done, and recorded.

use std::sync::Arc;

use k8s_openapi::{
    ByteString,
    api::{
        batch::v1::Job,
        core::v1::{Pod, Secret},
    },
};
use kube::ResourceExt;
use serde_json::json;
use windlass::{Context, Event, ObjectKey, Reader, conditions};

use super::{
    api::Database,
    build,
    controller::Error,
    jobs,
    status::{self, CREDENTIALS_SYNCED, Observed},
};
use crate::workload::{Problem, digest, known, pods};

/// The annotation of a server's Pod with the digest of the credentials that it should follow.
const CREDENTIALS: &str = "database.example.com/credentials";
/// What a Secret must say.
const KEYS: [&str; 4] = ["username", "password", "superuser-password", "database"];

/// How the server stands to its credentials. The text is the Secret's digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Credentials {
    /// A login has been seen to work.
    Synced(String),
    /// No server runs that could be asked.
    Waiting,
    /// The server is being brought in line, and a Job tries.
    Syncing(String),
    /// Something needs a person. Where a Job has told so, it stays until they have acted.
    Failed(Option<String>, Problem),
}

impl Credentials {
    /// Judges what was seen. Pure.
    pub(super) fn of(db: &Database, seen: &Observed, secret: &Secret) -> Self {
        let wanted = match digest(secret) {
            Ok(wanted) => wanted,
            Err(problem) => return Self::Failed(None, problem),
        };
        let recorded = db.status.as_ref().and_then(|status| status.credentials.as_ref());
        if recorded == Some(&wanted) {
            return Self::Synced(wanted);
        }
        let job = find(&seen.jobs, &build::login_job(db, &wanted).name_any());
        if job.is_some_and(status::is_complete) {
            return Self::Synced(wanted);
        }
        if let Some((_, why)) = job.and_then(status::job_failure) {
            let message = format!(
                "the server does not accept the credentials of the Secret {}: {why}; mend the Secret, or delete that \
                 Job to try again",
                secret.name_any()
            );
            return Self::Failed(Some(wanted), Problem::new("LoginFailed", message));
        }
        let Some(set) = &seen.set else { return Self::Waiting };
        let serves = |pod: &Arc<Pod>| pods::is_ready(pod) && status::runs_current(set, pod);
        if seen.pods.iter().any(serves) { Self::Syncing(wanted) } else { Self::Waiting }
    }

    /// The Job that tries, while it is needed.
    pub(super) fn job(&self, db: &Database) -> Option<Job> {
        match self {
            Self::Syncing(wanted) | Self::Failed(Some(wanted), _) => Some(build::login_job(db, wanted)),
            Self::Synced(_) | Self::Waiting | Self::Failed(None, _) => None,
        }
    }

    /// What a person has to know.
    pub(super) fn problem(&self) -> Option<Problem> {
        match self {
            Self::Failed(_, problem) => Some(problem.clone()),
            _ => None,
        }
    }
}

fn find<'a>(jobs: &'a [Arc<Job>], name: &str) -> Option<&'a Job> {
    jobs.iter().map(|job| &**job).find(|job| job.name_any() == name)
}

/// A digest of what a Secret says. Without the Secret's uid, which nobody knows who cannot read the Secret, it would
/// tell whoever can read a status whether they have guessed a password.
pub(super) fn digest(secret: &Secret) -> Result<String, Problem> {
    let text =
        |key: &str| secret.data.as_ref().and_then(|data| data.get(key)).filter(|text| !text.0.is_empty());
    let incomplete = |what: String| {
        let name = secret.name_any();
        let message = format!("the Secret {name} {what}; mend it, or delete it to have new passwords made");
        Problem::new("CredentialsIncomplete", message)
    };
    if let Some(key) = KEYS.iter().find(|key| text(key).is_none()) {
        return Err(incomplete(format!("has no {key}")));
    }
    let zero = KEYS.iter().find(|key| text(key).is_some_and(|text| text.0.contains(&0)));
    if let Some(key) = zero {
        return Err(incomplete(format!("has a {key} with a zero byte, which no client can send")));
    }
    Ok(digest::of(&(secret.uid(), KEYS.map(text))))
}

/// The Database whose credentials a Secret holds: by its label, or by its name where somebody else has made it.
pub(super) fn owner(secret: &Secret, _: &Reader) -> Vec<ObjectKey> {
    let name = secret.name_any();
    let label = secret.labels().get(build::NAME).map(String::as_str);
    let name = label.or_else(|| build::database_of_secret(&name));
    name.map(|name| ObjectKey::new(secret.namespace().as_deref(), name)).into_iter().collect()
}

/// Makes the credentials if there are none. Those of an earlier Database of the name go with its data, and are kept.
pub(super) async fn ensure(db: &Database, ctx: &Context<Database>) -> Result<(), Error> {
    let name = build::secret_name(db);
    let found = ctx.get::<Secret>(db.namespace().as_deref(), &name).map_err(Error::Read)?;
    let Some(secret) = found else {
        let secret = build::secret(db, &password()?, &password()?);
        return match ctx.create(secret).await {
            Err(error) if !error.is_already_exists() => Err(Error::CreateSecret(error)),
            Err(_) => Ok(()),
            Ok(_) => {
                tracing::info!(key = %ctx.key(), secret = name, "created the credentials");
                Ok(())
            }
        };
    };
    if let Some(uri) = stale_uri(db, &secret) {
        let patch = json!({"data": {"uri": ByteString(uri.into_bytes())}});
        ctx.patch(&*secret, &patch).await.map_err(Error::UpdateSecret)?;
    }
    Ok(())
}

/// The `uri` that a Secret of ours should have and has not, after somebody changed what it is made of.
fn stale_uri(db: &Database, secret: &Secret) -> Option<String> {
    let is_ours = secret.labels().get(build::NAME) == Some(&db.name_any());
    let data = secret.data.as_ref().filter(|_| is_ours && secret.immutable != Some(true))?;
    let text = |key: &str| std::str::from_utf8(&data.get(key)?.0).ok();
    let wanted =
        build::uri(text("username")?, text("password")?, text("host")?, text("port")?, text("database")?);
    (text("uri")? != wanted).then_some(wanted)
}

/// 24 letters and digits from the system's random source.
fn password() -> Result<String, Error> {
    const ALPHABET: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789-_.~0OIl";
    let mut bytes = [0_u8; 24];
    getrandom::fill(&mut bytes).map_err(Error::Password)?;
    // 64 of the letters: every value of six bits is one of them, none more likely than another.
    Ok(bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte & 63)])).collect())
}

/// How the server stands to its credentials, and a word to the kubelet if they have changed.
pub(super) async fn follow(
    db: &Database,
    ctx: &Context<Database>,
    seen: &Observed,
) -> Result<Option<Credentials>, Error> {
    let secret =
        ctx.get::<Secret>(db.namespace().as_deref(), &build::secret_name(db)).map_err(Error::Read)?;
    let Some(secret) = secret else { return Ok(None) };
    let mut found = Credentials::of(db, seen, &secret);
    if let Credentials::Syncing(wanted) = &found {
        for pod in seen.pods.iter().filter(|pod| pods::is_active(pod)) {
            if pod.annotations().get(CREDENTIALS) != Some(wanted) {
                let patch = json!({"metadata": {"annotations": {CREDENTIALS: wanted}}});
                ctx.patch(&**pod, &patch).await.map_err(Error::TellPod)?;
            }
        }
    }
    if let Credentials::Failed(Some(wanted), problem) = &mut found
        && let Some(word) = jobs::last_word(ctx, &build::login_job(db, wanted)).map_err(Error::Read)?
    {
        problem.message = format!("{} (the server said: {word})", problem.message);
    }
    Ok(Some(found))
}

/// Tells once that other credentials hold, or that they do not.
pub(super) fn announce(db: &Database, ctx: &Context<Database>, found: &Credentials) {
    let old = conditions::find(known(db), CREDENTIALS_SYNCED);
    match found {
        Credentials::Synced(_) if old.is_none_or(|old| old.status != "True") => {
            let note = format!("The server accepts the credentials of the Secret {}", build::secret_name(db));
            ctx.event(Event::normal(CREDENTIALS_SYNCED, note));
        }
        Credentials::Failed(_, problem) if old.is_none_or(|old| old.reason != problem.reason) => {
            ctx.event(Event::warning(problem.reason, problem.message.clone()));
        }
        _ => {}
    }
}
