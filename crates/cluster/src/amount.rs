//! Numbers and percentages of Pods, as `maxSurge`, `maxUnavailable` and `minAvailable` give them. Pure.

use windlass::{apimachinery::IntOrPercent, k8s_openapi::apimachinery::pkg::util::intstr::IntOrString};

/// A share rounded up.
pub(crate) fn rounded_up(value: &IntOrString, of: i32) -> i32 {
    share(value).rounded_up(of)
}

/// A share rounded down.
pub(crate) fn rounded_down(value: &IntOrString, of: i32) -> i32 {
    share(value).rounded_down(of)
}

/// A text that is no percentage, which the server does not take, is none.
fn share(value: &IntOrString) -> IntOrPercent {
    match value {
        IntOrString::Int(number) => IntOrPercent::Int(*number),
        IntOrString::String(text) => text.parse().unwrap_or(IntOrPercent::Int(0)),
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
