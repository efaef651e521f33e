//! The parameters of a request.

use std::collections::BTreeMap;

pub(crate) type Query = BTreeMap<String, String>;

/// Reads a query; of a name that is there twice the last one counts.
pub(crate) fn parse(query: Option<&str>) -> Query {
    form_urlencoded::parse(query.unwrap_or_default().as_bytes()).into_owned().collect()
}
