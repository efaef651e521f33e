//! Numbers and percentages of Pods, as `maxSurge`, `maxUnavailable` and `minAvailable` give them. Pure.

use windlass::k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// A share rounded up.
pub(crate) fn rounded_up(value: &IntOrString, of: i32) -> i32 {
    scaled(value, of, f64::ceil)
}

/// A share rounded down.
pub(crate) fn rounded_down(value: &IntOrString, of: i32) -> i32 {
    scaled(value, of, f64::floor)
}

fn scaled(value: &IntOrString, of: i32, round: fn(f64) -> f64) -> i32 {
    match value {
        IntOrString::Int(number) => *number,
        IntOrString::String(text) => {
            let percent: f64 = text.trim_end_matches('%').parse().unwrap_or(0.0);
            round(percent * f64::from(of) / 100.0) as i32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_the_way_they_are_asked_for() {
        let half = IntOrString::String("50%".into());
        assert_eq!((rounded_up(&half, 3), rounded_down(&half, 3)), (2, 1));
        assert_eq!(rounded_up(&IntOrString::Int(7), 3), 7);
    }
}
