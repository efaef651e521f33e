//! Whether the user may do what is about to be done: asked before anything is done, so that nothing is done by half.

use std::collections::BTreeSet;

use futures::{StreamExt, TryStreamExt, stream};
use windlass::{
    k8s_openapi::api::authorization::v1::{
        ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
    },
    kube::{self, Api, Client, api::PostParams, core::ApiResource},
};

use crate::{error::Error, history, objects, release::Release, target::Target};

/// How many questions are asked at a time.
const AT_ONCE: usize = 8;

/// One question: may this verb be used on these resources there?
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Question {
    group: String,
    resource: String,
    namespace: Option<String>,
    verb: &'static str,
}

/// What is needed, each once.
#[derive(Debug, Default)]
pub(crate) struct Needs(BTreeSet<Question>);

impl Needs {
    /// What applying the definitions of a release takes, and seeing their objects.
    pub(crate) fn defining(mut self, release: &Release) -> Self {
        for definition in release.definitions() {
            self.with(&Target::of(definition), &["get", "create", "patch"]);
        }
        self.kinds(release, &["list"]);
        self
    }

    /// What applying everything else takes, and keeping records of it.
    pub(crate) fn applying(mut self, release: &Release) -> Self {
        for object in release.others() {
            self.with(&Target::of(object), &["get", "create", "patch"]);
        }
        self.ask(&history::kind(), Some(&release.namespace), &["list", "create", "patch", "delete"]);
        self
    }

    /// What taking everything but definitions out takes, with or without their objects.
    pub(crate) fn undeploying(mut self, release: &Release, objects: bool) -> Self {
        for object in release.others() {
            self.with(&Target::of(object), &["get", "delete"]);
        }
        self.ask(&history::kind(), Some(&release.namespace), &["list", "delete"]);
        self.kinds(release, if objects { &["list", "delete"] } else { &["list"] });
        self
    }

    /// What deleting definitions with their objects takes.
    pub(crate) fn uninstalling(mut self, release: &Release) -> Self {
        for definition in release.definitions() {
            self.with(&Target::of(definition), &["get", "delete"]);
        }
        self.kinds(release, &["list", "delete"]);
        self
    }

    /// To do this with the objects of custom kinds, wherever they are.
    fn kinds(&mut self, release: &Release, verbs: &[&'static str]) {
        for kind in release.definitions().filter_map(objects::resource) {
            self.ask(&kind, None, verbs);
        }
    }

    /// To do this with an object and its like.
    fn with(&mut self, target: &Target, verbs: &[&'static str]) {
        self.ask(&target.resource, target.namespace.as_deref(), verbs);
    }

    fn ask(&mut self, resource: &ApiResource, namespace: Option<&str>, verbs: &[&'static str]) {
        for verb in verbs {
            self.0.insert(Question {
                group: resource.group.clone(),
                resource: resource.plural.clone(),
                namespace: namespace.map(ToOwned::to_owned),
                verb,
            });
        }
    }

    /// Asks all of it.
    pub(crate) async fn check(self, client: &Client) -> Result<(), Error> {
        let reviews = Api::<SelfSubjectAccessReview>::all(client.clone());
        let asked = stream::iter(self.0).map(|question| {
            let reviews = reviews.clone();
            async move { refused(&reviews, question).await }
        });
        let answers: Vec<Option<Question>> = asked.buffered(AT_ONCE).try_collect().await?;
        let refused: Vec<Question> = answers.into_iter().flatten().collect();
        // They are in order, so those about one resource stand together.
        let same = |one: &Question, other: &Question| one.place() == other.place();
        let missing: Vec<String> = refused.chunk_by(same).map(text).collect();
        if missing.is_empty() { Ok(()) } else { Err(Error::Forbidden(missing)) }
    }
}

/// The question, if the answer is no.
async fn refused(
    reviews: &Api<SelfSubjectAccessReview>,
    question: Question,
) -> Result<Option<Question>, Error> {
    let attributes = ResourceAttributes {
        group: Some(question.group.clone()),
        resource: Some(question.resource.clone()),
        namespace: question.namespace.clone(),
        verb: Some(question.verb.to_owned()),
        ..ResourceAttributes::default()
    };
    let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() };
    let review = SelfSubjectAccessReview { spec, ..Default::default() };
    match reviews.create(&PostParams::default(), &review).await {
        Ok(answer) => Ok((!answer.status.is_some_and(|status| status.allowed)).then_some(question)),
        // Whoever may not even ask will hear it from the requests themselves.
        Err(kube::Error::Api(_)) => Ok(None),
        Err(error) => {
            let what = "what this user may do".into();
            Err(Error::Request { verb: "ask", what, source: error.into() })
        }
    }
}

impl Question {
    fn place(&self) -> (&str, &str, Option<&str>) {
        (&self.group, &self.resource, self.namespace.as_deref())
    }
}

/// What must not be done with one kind of resource.
fn text(questions: &[Question]) -> String {
    let verbs: Vec<&str> = questions.iter().map(|question| question.verb).collect();
    let Some(first) = questions.first() else { return String::new() };
    let group = if first.group.is_empty() { String::new() } else { format!(".{}", first.group) };
    let place = first.namespace.as_ref().map_or_else(String::new, |name| format!(" in the namespace {name}"));
    format!("{} {}{group}{place}", verbs.join(", "), first.resource)
}
