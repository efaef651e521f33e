//! What keeps an autoscaler from following its metrics at once: windows, rates and bounds. Pure.

use std::time::Duration;

use windlass::{
    jiff::Timestamp,
    k8s_openapi::api::autoscaling::v2::{HPAScalingPolicy, HPAScalingRules, HorizontalPodAutoscalerSpec},
};

/// How long the highest recommendation holds when there could be fewer Pods.
const DOWN_WINDOW: Duration = Duration::from_mins(5);

/// Without rates of its own an autoscaler grows to twice the size at most, or to four.
const UP_FACTOR: i32 = 2;
const UP_LEAST: i32 = 4;

/// What an autoscaler remembers.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Whether anything was ever recommended: whoever remembers nothing takes the size that it finds for the first
    /// recommendation, so that a restart or a new autoscaler does not shrink at once what somebody else made large.
    begun: bool,
    recommendations: Vec<(Timestamp, i32)>,
    changes: Vec<(Timestamp, i32)>,
}

impl Memory {
    /// Notes that the target was rescaled.
    pub(super) fn rescaled(&mut self, now: Timestamp, by: i32) {
        self.changes.push((now, by));
        self.changes.retain(|(at, _)| age(*at, now) <= Duration::from_mins(30));
    }

    fn change(&self, now: Timestamp, period: i32, up: bool) -> i32 {
        let period = seconds(period);
        let within = self.changes.iter().filter(|(at, by)| age(*at, now) < period && (*by > 0) == up);
        within.fold(0, |sum: i32, (_, by)| sum.saturating_add(by.saturating_abs()))
    }
}

fn age(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(at)).unwrap_or_default()
}

fn seconds(seconds: i32) -> Duration {
    Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// A recommendation within its limits, and the conditions that tell of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Limited {
    pub(super) replicas: i32,
    /// `AbleToScale`: reason and message.
    pub(super) able: (&'static str, &'static str),
    /// `ScalingLimited`: whether, reason and message.
    pub(super) bounds: (bool, &'static str, &'static str),
}

/// Applies windows, rates and bounds to a recommendation.
pub(super) fn apply(
    spec: &HorizontalPodAutoscalerSpec,
    memory: &mut Memory,
    current: i32,
    wanted: i32,
    now: Timestamp,
) -> Limited {
    let stable = stabilize(spec, memory, current, wanted, now);
    let able = match stable {
        stable if stable == wanted => ("ReadyForNewScale", "recommended size matches current size"),
        stable if stable > wanted => (
            "ScaleDownStabilized",
            "recent recommendations were higher than current one, applying the highest recent recommendation",
        ),
        _ => (
            "ScaleUpStabilized",
            "recent recommendations were lower than current one, applying the lowest recent recommendation",
        ),
    };
    let (replicas, reason, message) = match &spec.behavior {
        Some(_) => bound(spec, memory, current, stable, now),
        None => bound_by_size(spec, current, stable),
    };
    Limited { replicas, able, bounds: (replicas != stable, reason, message) }
}

fn rules(spec: &HorizontalPodAutoscalerSpec, up: bool) -> Option<&HPAScalingRules> {
    let behavior = spec.behavior.as_ref()?;
    if up { behavior.scale_up.as_ref() } else { behavior.scale_down.as_ref() }
}

fn stabilize(
    spec: &HorizontalPodAutoscalerSpec,
    memory: &mut Memory,
    current: i32,
    wanted: i32,
    now: Timestamp,
) -> i32 {
    let window = |up: bool, default: Duration| {
        rules(spec, up).and_then(|rules| rules.stabilization_window_seconds).map_or(default, seconds)
    };
    let (up, down) = (window(true, Duration::ZERO), window(false, DOWN_WINDOW));
    if !std::mem::replace(&mut memory.begun, true) {
        memory.recommendations.push((now, current));
    }
    memory.recommendations.retain(|(at, _)| age(*at, now) <= up.max(down));
    let within = |limit: Duration| {
        let recent = memory.recommendations.iter().filter(move |(at, _)| age(*at, now) < limit);
        recent.map(|(_, replicas)| *replicas)
    };
    let highest = within(down).max().unwrap_or(wanted).max(wanted);
    let lowest = within(up).min().unwrap_or(wanted).min(wanted);
    memory.recommendations.push((now, wanted));
    if spec.behavior.is_none() {
        return highest;
    }
    // Up no further than the lowest of late, down no further than the highest.
    current.max(lowest).min(highest.max(lowest))
}

fn bound(
    spec: &HorizontalPodAutoscalerSpec,
    memory: &Memory,
    current: i32,
    wanted: i32,
    now: Timestamp,
) -> (i32, &'static str, &'static str) {
    let (least, most) = (spec.min_replicas.unwrap_or(1), spec.max_replicas);
    if wanted > current {
        // What was added within the period may be more than is there: that is no reason to shrink, nor below to grow.
        let limit = rate(spec, memory, current, true, now).max(current);
        if wanted > limit.min(most) {
            return if most > limit {
                (
                    limit,
                    "ScaleUpLimit",
                    "the desired replica count is increasing faster than the maximum scale rate",
                )
            } else {
                (most, "TooManyReplicas", "the desired replica count is more than the maximum replica count")
            };
        }
    }
    if wanted < current {
        let limit = rate(spec, memory, current, false, now).min(current);
        if wanted < limit.max(least) {
            return if limit > least {
                (
                    limit,
                    "ScaleDownLimit",
                    "the desired replica count is decreasing faster than the maximum scale rate",
                )
            } else {
                (least, "TooFewReplicas", "the desired replica count is less than the minimum replica count")
            };
        }
    }
    if wanted < least {
        return (least, "TooFewReplicas", "the desired replica count is less than the minimum replica count");
    }
    if wanted > most {
        return (most, "TooManyReplicas", "the desired replica count is more than the maximum replica count");
    }
    (wanted, "DesiredWithinRange", "the desired count is within the acceptable range")
}

/// The same for an autoscaler that says nothing of how fast it scales.
fn bound_by_size(
    spec: &HorizontalPodAutoscalerSpec,
    current: i32,
    wanted: i32,
) -> (i32, &'static str, &'static str) {
    let (least, most) = (spec.min_replicas.unwrap_or(1), spec.max_replicas);
    let limit = current.saturating_mul(UP_FACTOR).max(UP_LEAST);
    if wanted < least {
        return (least, "TooFewReplicas", "the desired replica count is less than the minimum replica count");
    }
    if wanted > limit.min(most) {
        return if most > limit {
            (
                limit,
                "ScaleUpLimit",
                "the desired replica count is increasing faster than the maximum scale rate",
            )
        } else {
            (most, "TooManyReplicas", "the desired replica count is more than the maximum replica count")
        };
    }
    (wanted, "DesiredWithinRange", "the desired count is within the acceptable range")
}

/// How far the size may go now.
fn rate(spec: &HorizontalPodAutoscalerSpec, memory: &Memory, current: i32, up: bool, now: Timestamp) -> i32 {
    let rules = rules(spec, up);
    let select = rules.and_then(|rules| rules.select_policy.as_deref()).unwrap_or("Max");
    if select == "Disabled" {
        return current;
    }
    let given = rules.and_then(|rules| rules.policies.clone()).filter(|policies| !policies.is_empty());
    let policies = given.unwrap_or_else(|| default_policies(up));
    let reach = policies.iter().map(|policy| {
        let start = current
            .saturating_sub(memory.change(now, policy.period_seconds, true))
            .saturating_add(memory.change(now, policy.period_seconds, false));
        let value = if up { policy.value } else { policy.value.saturating_neg() };
        match policy.type_.as_str() {
            "Pods" => start.saturating_add(value),
            _ => {
                let share = f64::from(start) * (1.0 + f64::from(value) / 100.0);
                if up { share.ceil() as i32 } else { share.floor() as i32 }
            }
        }
    });
    // The largest change is the highest number on the way up and the lowest on the way down.
    if (select == "Max") == up { reach.max().unwrap_or(current) } else { reach.min().unwrap_or(current) }
}

fn default_policies(up: bool) -> Vec<HPAScalingPolicy> {
    let policy =
        |type_: &str, value: i32| HPAScalingPolicy { type_: type_.into(), value, period_seconds: 15 };
    if up { vec![policy("Pods", 4), policy("Percent", 100)] } else { vec![policy("Percent", 100)] }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use windlass::serde_json::{Value, from_value, json};

    use super::*;
    use crate::pods::tests::at;

    fn spec(behavior: Value) -> HorizontalPodAutoscalerSpec {
        from_value(json!({
            "minReplicas": 2, "maxReplicas": 20, "behavior": behavior,
            "scaleTargetRef": {"kind": "Deployment", "name": "web"},
        }))
        .unwrap()
    }

    #[test]
    fn the_highest_recommendation_of_five_minutes_holds() {
        let spec = spec(json!({}));
        let mut memory = Memory::default();
        assert_eq!(apply(&spec, &mut memory, 5, 6, at(0)).replicas, 6);
        let held = apply(&spec, &mut memory, 6, 2, at(60));
        assert_eq!((held.replicas, held.able.0), (6, "ScaleDownStabilized"));
        assert_eq!(apply(&spec, &mut memory, 6, 2, at(301)).replicas, 2);
    }

    proptest! {
        /// Policies, sizes and what is remembered of them may be any number.
        #[test]
        fn no_number_is_too_large_to_be_bounded(
            sizes in prop::collection::vec((any::<i32>(), any::<i32>()), 1..5),
            kind in prop::sample::select(vec!["Pods", "Percent"]),
            (value, period, window) in (any::<i32>(), any::<i32>(), any::<i32>()),
        ) {
            let rules = json!({"stabilizationWindowSeconds": window,
                "policies": [{"type": kind, "value": value, "periodSeconds": period}]});
            let spec = spec(json!({"scaleUp": rules, "scaleDown": rules}));
            let mut memory = Memory::default();
            for (second, (current, wanted)) in sizes.into_iter().enumerate() {
                let limited = apply(&spec, &mut memory, current, wanted, at(second as i64));
                if spec.max_replicas >= current && current >= 2 {
                    let change = limited.replicas.saturating_sub(current);
                    prop_assert!((wanted >= current || change <= 0) && (wanted <= current || change >= 0));
                }
                memory.rescaled(at(second as i64), limited.replicas.saturating_sub(current));
            }
        }
    }

    #[test]
    fn a_size_that_was_found_holds_for_five_minutes() {
        for behavior in [json!({}), Value::Null] {
            let (spec, mut memory) = (spec(behavior), Memory::default());
            let first = apply(&spec, &mut memory, 8, 2, at(0));
            assert_eq!((first.replicas, first.able.0), (8, "ScaleDownStabilized"));
            assert_eq!(apply(&spec, &mut memory, 8, 2, at(299)).replicas, 8);
            assert_eq!(apply(&spec, &mut memory, 8, 2, at(301)).replicas, 2);
        }
    }

    #[test]
    fn a_rate_never_turns_the_direction_round() {
        let slow = json!({"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}],
            "stabilizationWindowSeconds": 0});
        let spec = spec(json!({"scaleUp": slow, "scaleDown": slow}));
        let mut memory = Memory::default();
        memory.rescaled(at(0), 4);
        // Somebody set 5 where 8 had been reached; the metrics want 10.
        assert_eq!(apply(&spec, &mut memory, 5, 10, at(30)).replicas, 5);
        let mut memory = Memory::default();
        memory.rescaled(at(0), -4);
        assert_eq!(apply(&spec, &mut memory, 9, 3, at(30)).replicas, 9);
    }

    #[test]
    fn without_rates_it_grows_to_twice_the_size_or_four() {
        let spec = spec(Value::Null);
        let wanted = |current| apply(&spec, &mut Memory::default(), current, 50, at(0)).replicas;
        assert_eq!((wanted(1), wanted(3), wanted(9), wanted(15)), (4, 6, 18, 20));
    }

    #[test]
    fn bounds_and_rates_are_named() {
        let spec = spec(json!({}));
        let limited = |current, wanted| {
            let limited =
                apply(&spec, &mut Memory { begun: true, ..Memory::default() }, current, wanted, at(0));
            (limited.replicas, limited.bounds.1)
        };
        assert_eq!(limited(3, 4), (4, "DesiredWithinRange"));
        assert_eq!(limited(3, 50), (7, "ScaleUpLimit"));
        assert_eq!(limited(15, 50), (20, "TooManyReplicas"));
        assert_eq!(limited(3, 1), (2, "TooFewReplicas"));
    }

    #[test]
    fn policies_limit_the_change_of_a_period() {
        let spec =
            spec(json!({"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]}}));
        let mut memory = Memory::default();
        assert_eq!(apply(&spec, &mut memory, 3, 10, at(0)).replicas, 5);
        memory.rescaled(at(0), 2);
        assert_eq!(apply(&spec, &mut memory, 5, 10, at(30)).replicas, 5);
        assert_eq!(apply(&spec, &mut memory, 5, 10, at(61)).replicas, 7);
        let disabled =
            self::spec(json!({"scaleDown": {"selectPolicy": "Disabled", "stabilizationWindowSeconds": 0}}));
        assert_eq!(apply(&disabled, &mut Memory::default(), 9, 3, at(0)).replicas, 9);
    }
}
