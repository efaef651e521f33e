//! How values are written in cells.

use jiff::Timestamp;
use serde_json::{Value, json};

/// A custom resource's cell of the given type.
pub(crate) fn cell(kind: &str, found: &[&Value], now: Timestamp) -> Value {
    let Some(first) = found.first() else { return Value::Null };
    match kind {
        "date" => match first.as_str() {
            Some(text) => json!(age(text, now)),
            None => Value::Null,
        },
        "integer" => first.as_i64().map_or(Value::Null, |number| json!(number)),
        "number" => first.as_f64().map_or(Value::Null, |number| json!(number)),
        "boolean" => first.as_bool().map_or(Value::Null, |value| json!(value)),
        _ => json!(found.iter().map(|value| plain(value)).collect::<Vec<_>>().join(",")),
    }
}

/// A value without quotes.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// How long ago a timestamp was, or `<unknown>`.
pub(crate) fn age(timestamp: &str, now: Timestamp) -> String {
    match timestamp.parse::<Timestamp>() {
        Ok(then) => duration(now.as_second() - then.as_second()),
        Err(_) if timestamp.is_empty() => "<unknown>".into(),
        Err(_) => "<invalid>".into(),
    }
}

/// A duration in one or two units: the shorter it is, the finer.
pub(crate) fn duration(seconds: i64) -> String {
    if seconds < -1 {
        return "<invalid>".into();
    }
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let pair = |large: i64, unit: char, small: i64, small_unit: char| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{small_unit}") }
    };
    match seconds {
        0..120 => format!("{seconds}s"),
        120..600 => pair(minutes, 'm', seconds % 60, 's'),
        600..10_800 => format!("{minutes}m"),
        10_800..28_800 => pair(hours, 'h', minutes % 60, 'm'),
        28_800..172_800 => format!("{hours}h"),
        172_800..691_200 => pair(days, 'd', hours % 24, 'h'),
        691_200..63_072_000 => format!("{days}d"),
        63_072_000..252_288_000 => pair(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_kubectl_prints_them() {
        let cases = [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (11_000, "3h3m"),
            (28_800, "8h"),
            (172_800, "2d"),
            (180_000, "2d2h"),
            (691_200, "8d"),
        ];
        for (seconds, text) in cases {
            assert_eq!(duration(seconds), text, "{seconds}");
        }
    }
}
