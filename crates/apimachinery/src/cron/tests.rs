//! Schedules that people write, those that Kubernetes refuses, and the next time found minute by minute.

use proptest::prelude::*;

use super::*;

fn following(schedule: &str, after: &str, zone: &str, count: usize) -> Vec<String> {
    let schedule = Schedule::parse(schedule).unwrap();
    let zone = TimeZone::get(zone).unwrap();
    let mut time: Timestamp = after.parse().unwrap();
    let mut times = Vec::new();
    for _ in 0..count {
        time = schedule.next_after(time, &zone).unwrap();
        times.push(time.to_string());
    }
    times
}

fn next(schedule: &str, after: &str) -> String {
    following(schedule, after, "UTC", 1).remove(0)
}

#[test]
fn fields_steps_ranges_names_and_words_are_understood() {
    let now = "2026-02-27T12:30:15Z";
    for (schedule, expected) in [
        ("*/15 * * * *", "2026-02-27T12:45:00Z"),
        ("0 2 * * *", "2026-02-28T02:00:00Z"),
        ("30 12 * * *", "2026-02-28T12:30:00Z"),
        ("0 0 * * 0", "2026-03-01T00:00:00Z"),
        ("5 4 * JAN-MAR mon", "2026-03-02T04:05:00Z"),
        ("0 10/6 * * *", "2026-02-27T16:00:00Z"),
        ("0 0 29 2 *", "2028-02-29T00:00:00Z"),
        ("0 0 ? MAR-MAY ?", "2026-03-01T00:00:00Z"),
        ("5,10 8-9 * 3 1-5", "2026-03-02T08:05:00Z"),
        ("0,,30 12 * * *", "2026-02-28T12:00:00Z"),
        ("+5 * * * *", "2026-02-27T13:05:00Z"),
        ("@hourly", "2026-02-27T13:00:00Z"),
        ("@daily", "2026-02-28T00:00:00Z"),
        ("@midnight", "2026-02-28T00:00:00Z"),
        ("@weekly", "2026-03-01T00:00:00Z"),
        ("@monthly", "2026-03-01T00:00:00Z"),
        ("@yearly", "2027-01-01T00:00:00Z"),
        ("@annually", "2027-01-01T00:00:00Z"),
        ("@every 1h30m", "2026-02-27T14:00:15Z"),
        ("@every 90s", "2026-02-27T12:31:45Z"),
        ("@every 1ms", "2026-02-27T12:30:16Z"),
        ("@every -5m", "2026-02-27T12:30:16Z"),
        ("TZ=Asia/Tokyo 0 2 * * *", "2026-02-27T17:00:00Z"),
        ("CRON_TZ=Asia/Tokyo @daily", "2026-02-27T15:00:00Z"),
    ] {
        assert_eq!(next(schedule, now), expected, "{schedule}");
    }
}

#[test]
fn a_day_of_month_or_of_week_is_enough_when_both_are_given() {
    // The 13th, and every Friday.
    assert_eq!(
        following("0 0 13 * 5", "2026-03-01T00:00:00Z", "UTC", 3),
        ["2026-03-06T00:00:00Z", "2026-03-13T00:00:00Z", "2026-03-20T00:00:00Z"]
    );
    assert_eq!(next("0 0 */2 * MON", "2026-02-27T12:30:15Z"), "2026-03-01T00:00:00Z", "*/2 is not *");
    assert_eq!(next("0 0 */1 * MON", "2026-02-27T12:30:15Z"), "2026-03-02T00:00:00Z", "*/1 is *");
}

#[test]
fn clock_changes_skip_and_repeat() {
    // 02:30 does not exist on 8 March 2026 in New York.
    assert_eq!(
        following("30 2 * * *", "2026-03-07T08:00:00Z", "America/New_York", 1),
        ["2026-03-09T06:30:00Z"]
    );
    assert_eq!(
        following("30 1 * * *", "2026-11-01T04:00:00Z", "America/New_York", 2),
        ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"]
    );
    // Midnight does not exist on 24 April 2026 in Cairo.
    assert_eq!(following("0 * 24 4 *", "2026-04-23T12:00:00Z", "Africa/Cairo", 1), ["2026-04-23T22:00:00Z"]);
}

#[test]
fn what_cannot_be_read_is_explained() {
    for (text, why, hint) in [
        ("", "empty spec string", "five fields"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]", "has 4 fields"),
        ("60 * * * *", "end of range (60) above maximum (59): 60", "the minute is \"60\""),
        ("* 24 * * *", "end of range (24) above maximum (23): 24", "the hour"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0", "the day of the month"),
        ("* * * * 7", "end of range (7) above maximum (6): 7", "from 0 to 6, names from sun to sat"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1", "the minute"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3", "the minute"),
        ("*/2/3 * * * *", "too many slashes: */2/3", "the minute"),
        ("*/0 * * * *", "step of range should be a positive number: */0", "the minute"),
        (
            "x * * * *",
            "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax",
            "the minute",
        ),
        ("-5 * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax", "the minute"),
        ("*/-5 * * * *", "negative number (-5) not allowed: -5", "the minute"),
        (
            "* * * * */mon",
            "failed to parse int from mon: strconv.Atoi: parsing \"mon\": invalid syntax",
            "week",
        ),
        ("@never", "unrecognized descriptor: @never", "@never is no schedule"),
        (
            "@every day",
            "failed to parse duration @every day: time: invalid duration \"day\"",
            "@every day is no schedule",
        ),
        ("TZ=Nowhere 0 2 * * *", "provided bad location Nowhere: unknown time zone Nowhere", "\"Nowhere\""),
        ("TZ=UTC", "expected exactly 5 fields, found 0: []", "0 fields"),
    ] {
        let error = Schedule::parse(text).unwrap_err();
        assert_eq!(error.to_string(), why);
        assert!(error.hint().contains(hint), "{text}: {}", error.hint());
    }
    assert_eq!(
        Schedule::parse("0 0 31 2 *").unwrap().next_after(Timestamp::UNIX_EPOCH, &TimeZone::UTC),
        None
    );
}

/// A field, of the kinds that people write.
fn some_field(least: u32, most: u32) -> impl Strategy<Value = String> {
    let number = least..=most;
    prop_oneof![
        3 => Just("*".to_owned()),
        2 => number.clone().prop_map(|number| number.to_string()),
        1 => (1..20_u32).prop_map(|step| format!("*/{step}")),
        1 => (number.clone(), number.clone()).prop_map(|(a, b)| format!("{}-{}", a.min(b), a.max(b))),
        1 => (number.clone(), number, 1..9_u32)
            .prop_map(|(a, b, step)| format!("{a},{b}/{step}")),
    ]
}

fn some_schedule() -> impl Strategy<Value = String> {
    (some_field(0, 59), some_field(0, 23), some_field(1, 31), some_field(1, 12), some_field(0, 6))
        .prop_map(|(minute, hour, day, month, weekday)| format!("{minute} {hour} {day} {month} {weekday}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// The first minute after another one that fits, asked one by one.
    #[test]
    fn the_next_time_is_the_first_minute_that_fits(
        text in some_schedule(),
        // Around the clock changes of 2026.
        start in prop::sample::select(vec![1_772_900_000_i64, 1_774_700_000, 1_792_800_000, 1_793_400_000]),
        offset in 0..200_000_i64,
        zone in prop::sample::select(vec!["UTC", "America/New_York", "Europe/Rome", "Asia/Kathmandu"]),
    ) {
        let schedule = Schedule::parse(&text).unwrap();
        let Times::At(fields) = &schedule.times else { unreachable!("fields were given") };
        let zone = TimeZone::get(zone).unwrap();
        let after = Timestamp::from_second(start + offset).unwrap();
        let first = after.as_second().div_euclid(60) + 1;
        let fits = |minute: &i64| {
            let time = Timestamp::from_second(minute * 60).unwrap().to_zoned(zone.clone());
            fields.month.contains(time.month()) && fields.has_day(&time)
                && fields.hour.contains(time.hour()) && fields.minute.contains(time.minute())
        };
        // Three days are enough to see a clock change, and to be quick.
        let horizon = first + 3 * 24 * 60;
        let expected = (first..horizon).find(fits).map(|minute| Timestamp::from_second(minute * 60).unwrap());
        let found = schedule.next_after(after, &zone).filter(|found| found.as_second() < horizon * 60);
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[-*?/,@0-9a-zA-Z= ]{0,40}") {
        match Schedule::parse(&text) {
            Ok(schedule) => drop(schedule.next_after(Timestamp::UNIX_EPOCH, &TimeZone::UTC)),
            Err(error) => prop_assert!(!error.hint().is_empty()),
        }
    }
}
