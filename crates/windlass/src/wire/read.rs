//! Reads JSON into objects whose lists take no more memory than they need.
//!
//! A `Vec` that grows by pushing has room for four elements as soon as it has one, unless they are very large. Most
//! lists of Kubernetes objects have exactly one (ports, owner references, ingress addresses), of a hundred bytes and
//! more: the three empty places add up. What is told here instead is to begin with room for one.

use std::fmt;

use serde::de::{
    Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess,
    Visitor,
};

/// As `serde_json::from_str`.
///
/// Everything that reads a typed object goes through this one: a second way would be all the code that reads a
/// Deployment, once more.
pub(crate) fn from_str<'de, T: Deserialize<'de>>(text: &'de str) -> serde_json::Result<T> {
    let mut json = serde_json::Deserializer::from_str(text);
    let value = T::deserialize(Compact(&mut json))?;
    json.end()?;
    Ok(value)
}

/// As [`serde_json::from_value`], by way of the text.
///
/// That is slower, and no code of its own for each type: reading a Pod from a tree of values would be as much as reading
/// it from text, which is there already. For what happens seldom.
pub fn from_value<T: DeserializeOwned>(value: &serde_json::Value) -> serde_json::Result<T> {
    from_str(&value.to_string())
}

/// Passes everything on as it is, except for how long a list is expected to be.
struct Compact<T>(T);

macro_rules! deserialize {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method($($argument,)* Compact(visitor))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Compact<D> {
    type Error = D::Error;

    deserialize! {
        deserialize_any(); deserialize_bool(); deserialize_char(); deserialize_unit(); deserialize_option();
        deserialize_i8(); deserialize_i16(); deserialize_i32(); deserialize_i64(); deserialize_i128();
        deserialize_u8(); deserialize_u16(); deserialize_u32(); deserialize_u64(); deserialize_u128();
        deserialize_f32(); deserialize_f64();
        deserialize_str(); deserialize_string(); deserialize_bytes(); deserialize_byte_buf();
        deserialize_seq(); deserialize_map(); deserialize_identifier(); deserialize_ignored_any();
        deserialize_unit_struct(name: &'static str);
        deserialize_newtype_struct(name: &'static str);
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        deserialize_enum(name: &'static str, variants: &'static [&'static str]);
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

macro_rules! visit {
    ($($method:ident: $type:ty;)*) => {$(
        fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.0.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Compact<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    visit! {
        visit_bool: bool; visit_char: char;
        visit_i8: i8; visit_i16: i16; visit_i32: i32; visit_i64: i64; visit_i128: i128;
        visit_u8: u8; visit_u16: u16; visit_u32: u32; visit_u64: u64; visit_u128: u128;
        visit_f32: f32; visit_f64: f64;
        visit_str: &str; visit_borrowed_str: &'de str; visit_string: String;
        visit_bytes: &[u8]; visit_borrowed_bytes: &'de [u8]; visit_byte_buf: Vec<u8>;
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Compact(value))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Compact(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Compact(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Compact(map))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, data: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(data)
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Compact<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Compact(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint().or(Some(1))
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Compact<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(Compact(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Compact(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Compact<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Compact(value))
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use kube::core::DynamicObject;
    use serde_json::{Value, json};

    use super::*;

    fn deployment() -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a \"b\" ü", "labels": {"x": "y"}, "ownerReferences": [
                {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u", "controller": true},
            ]},
            "spec": {
                "replicas": 3, "selector": {}, "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
                "template": {"spec": {"containers": [
                    {"name": "c", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1"}},
                     "args": ["one", "two"]},
                ]}},
            },
        })
    }

    #[test]
    fn objects_are_the_same_as_ever_and_single_elements_have_no_empty_neighbours() {
        let text = deployment().to_string();
        let read: Deployment = from_str(&text).unwrap();
        assert_eq!(read, serde_json::from_str(&text).unwrap());
        let room = |read: Deployment| {
            let owners = read.metadata.owner_references.unwrap().capacity();
            let containers = read.spec.template.spec.unwrap().containers;
            assert_eq!(containers[0].args.as_ref().unwrap().len(), 2);
            (owners, containers.capacity(), containers[0].ports.as_ref().unwrap().capacity())
        };
        assert_eq!(room(read), (1, 1, 1));
        let grown = room(serde_json::from_str(&text).unwrap());
        assert!(grown > (1, 1, 1), "or else nothing of this is needed any more: {grown:?}");
    }

    #[test]
    fn values_dynamic_objects_and_mistakes_pass_through() {
        let text = deployment().to_string();
        assert_eq!(from_str::<Value>(&text).unwrap(), deployment());
        assert_eq!(from_str::<DynamicObject>(&text).unwrap(), serde_json::from_str(&text).unwrap());
        let [ours, theirs] = [from_str::<Deployment>, serde_json::from_str::<Deployment>]
            .map(|read| read(r#"{"metadata":{},"spec":{"replicas":"x"}}"#).unwrap_err().to_string());
        assert_eq!(ours, theirs);
        assert!(from_str::<Value>("{} {}").is_err(), "trailing text");
    }
}
