//! `url`, `isURL` and the methods of a URL.
//!
//! Enters the text of an expression; leaves a URL taken apart as the real server takes it apart (`parse.rs`), or the
//! error in its words.

use std::{collections::HashMap, sync::Arc};

use kube_cel::cel::{
    Context, ExecutionError, ResolveResult, Value,
    extractors::This,
    objects::{Key, Map, Opaque},
};

mod parse;

use parse::Url;

impl Opaque for Url {
    fn runtime_type_name(&self) -> &'static str {
        "kubernetes.URL"
    }
}

pub(super) fn register(context: &mut Context<'_>) {
    context.add_function("url", |given: Arc<String>| match Url::parse(&given) {
        Ok(url) => Ok(Value::Opaque(Arc::new(url))),
        Err(problem) => {
            let said = format!("URL parse error during conversion from string: parse {given:?}: {problem}");
            Err(ExecutionError::function_error("url", said))
        }
    });
    context.add_function("isURL", |given: Arc<String>| Url::parse(&given).is_ok());
    context.add_function("getScheme", |This(of): This<Value>| text(&of, |url| url.scheme.clone()));
    context.add_function("getHost", |This(of): This<Value>| text(&of, |url| url.host.clone()));
    context.add_function("getHostname", |This(of): This<Value>| text(&of, |url| url.hostname().to_owned()));
    context.add_function("getPort", |This(of): This<Value>| text(&of, |url| url.port().to_owned()));
    context.add_function("getEscapedPath", |This(of): This<Value>| text(&of, |url| url.path.clone()));
    context.add_function("getQuery", |This(of): This<Value>| of_url(&of, query));
}

fn of_url(value: &Value, get: fn(&Url) -> Value) -> ResolveResult {
    let Value::Opaque(opaque) = value else { return Err(ExecutionError::NoSuchOverload) };
    opaque.downcast_ref::<Url>().map(get).ok_or(ExecutionError::NoSuchOverload)
}

fn text(value: &Value, get: fn(&Url) -> String) -> ResolveResult {
    let Value::Opaque(opaque) = value else { return Err(ExecutionError::NoSuchOverload) };
    let url = opaque.downcast_ref::<Url>().ok_or(ExecutionError::NoSuchOverload)?;
    Ok(Value::String(Arc::new(get(url))))
}

/// Every value of every key, in order; what cannot be decoded is left out.
fn query(url: &Url) -> Value {
    let mut values = HashMap::<String, Vec<Value>>::new();
    for (key, value) in url.query_pairs() {
        values.entry(key).or_default().push(Value::String(Arc::new(value)));
    }
    let map =
        values.into_iter().map(|(key, values)| (Key::String(Arc::new(key)), Value::List(Arc::new(values))));
    Value::Map(Map { map: Arc::new(map.collect()) })
}
