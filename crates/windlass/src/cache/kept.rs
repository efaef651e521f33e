//! How an object is kept: as a typed value, or as the text that it was read from.
//!
//! A typed Deployment takes six times the memory of its text: every map of labels is half a kilobyte, and every field
//! that is not set has its place. Children are many and read seldom, by the run of their owner; so a kind that is
//! owned and nothing else is kept as text, and read when somebody looks at one. That costs some microseconds where a
//! request costs a thousand. What is listed or indexed, or has many siblings under one owner, is kept typed: there, the
//! same objects are looked at again and again.

use std::{any::Any, fmt::Debug, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::store::Transform;
use crate::{object::AnyObject, wire::read};

/// An object of some kind, as far as stores and workers have to know it: these are one piece of code for all kinds, and not
/// one for each.
pub(crate) trait Held: Any + Debug + Send + Sync {
    fn metadata(&self) -> &ObjectMeta;
    /// About how much memory it takes.
    fn bytes(&self) -> usize;
    fn as_any(&self) -> &dyn Any;
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
    fn unboxed(self: Box<Self>) -> Box<dyn Any>;
}

impl<K: AnyObject> Held for K {
    fn metadata(&self) -> &ObjectMeta {
        self.meta()
    }

    fn bytes(&self) -> usize {
        // By way of a tree of values, as writes are made: straight to text would be more code for every kind.
        size_of::<K>() + serde_json::to_value(self).map_or(0, |json| json.to_string().len())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }

    fn unboxed(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// What a store cannot do without knowing the kind.
pub(super) trait Typing: Send + Sync {
    /// Reads an object, and transforms it.
    fn read(&self, text: &str) -> Arc<dyn Held>;
    /// Transforms an object.
    fn finish(&self, object: Box<dyn Held>) -> Arc<dyn Held>;
}

/// The kind, and what is done to its objects before they are kept.
pub(super) struct Of<K>(pub(super) Option<Transform<K>>);

impl<K: AnyObject> Typing for Of<K> {
    fn read(&self, text: &str) -> Arc<dyn Held> {
        opened::<K>(text, self.0.as_ref())
    }

    fn finish(&self, object: Box<dyn Held>) -> Arc<dyn Held> {
        let Some(transform) = &self.0 else { return object.into() };
        let mut object = unboxed::<K>(object);
        transform(&mut object);
        Arc::new(object)
    }
}

/// The typed value. Only what has been read before is kept.
fn opened<K: AnyObject>(text: &str, transform: Option<&Transform<K>>) -> Arc<K> {
    let mut object = read::<K>(text).expect("what was read once must be readable again");
    if let Some(transform) = transform {
        transform(&mut object);
    }
    Arc::new(object)
}

/// The typed value of an object that was not kept.
pub(super) fn unboxed<K: AnyObject>(object: Box<dyn Held>) -> K {
    *object.unboxed().downcast().expect("a store must hold objects of one kind")
}

/// An object in a store. Clones share it.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    Typed(Arc<dyn Held>),
    /// Without `managedFields`, and not transformed yet.
    Text(Arc<str>),
}

impl Kept {
    /// The typed value.
    pub(super) fn open<K: AnyObject>(&self, transform: Option<&Transform<K>>) -> Arc<K> {
        match self {
            Self::Typed(object) => {
                object.clone().into_any().downcast().expect("a store must hold objects of one kind")
            }
            Self::Text(text) => opened(text, transform),
        }
    }

    /// The value, of whichever type.
    pub(super) fn held(&self, typing: &dyn Typing) -> Arc<dyn Held> {
        match self {
            Self::Typed(object) => object.clone(),
            Self::Text(text) => typing.read(text),
        }
    }

    /// About how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Typed(object) => object.bytes(),
            Self::Text(text) => text.len(),
        }
    }
}
