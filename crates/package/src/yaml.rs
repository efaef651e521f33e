//! Objects as YAML, as people write it.

use serde_json::Value;

use crate::Error;

/// One document.
pub(crate) fn document(path: &str, value: &Value) -> Result<String, Error> {
    let mut value = value.clone();
    tidy(&mut value);
    let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
    serde_saphyr::to_string_with_options(&value, options)
        .map_err(|source| Error::Yaml { path: path.to_owned(), source: Box::new(source) })
}

/// Several documents, one below the other.
pub(crate) fn stream(path: &str, values: &[Value]) -> Result<String, Error> {
    let mut text = String::new();
    for value in values {
        text.push_str("---\n");
        text.push_str(&document(path, value)?);
    }
    Ok(text)
}

/// Removes what a person would not write: nulls, and the `.0` that types give to whole numbers.
pub(crate) fn tidy(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Number(number) if number.is_f64() => {
            // Up to 2^53 every whole number has an exact float.
            let whole = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9e15);
            if let Some(whole) = whole {
                *number = (whole as i64).into();
            }
        }
        _ => {}
    }
}
