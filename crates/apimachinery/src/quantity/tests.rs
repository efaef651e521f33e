//! What Kubernetes prints for what it reads, and the laws that numbers obey.

use proptest::prelude::*;

use super::*;

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap()
}

#[test]
fn quantities_print_as_the_server_prints_them() {
    for (text, expected) in [
        ("0.5", "500m"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1024", "1024"),
        ("1000", "1k"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("100Mi", "100Mi"),
        ("512Ki", "512Ki"),
        ("0.5Ki", "512"),
        ("1e3", "1e3"),
        ("12E2", "1200"),
        ("1E", "1E"),
        ("1000E", "1e21"),
        ("1e21", "1e21"),
        ("1e99", "1e99"),
        ("100e99", "100e99"),
        ("0", "0"),
        ("0Mi", "0"),
        ("-0", "0"),
        ("-1.5", "-1500m"),
        ("-1.5Gi", "-1536Mi"),
        ("+2", "2"),
        ("1.", "1"),
        (".5", "500m"),
        ("0.0000000001", "1n"),
        ("-0.0000000001", "-1n"),
        ("0.9n", "1n"),
        ("1e-400", "1e-9"),
        ("18446744073709551616", "18446744073709551616"),
        ("1.2345", "1234500u"),
        ("8Ei", "9223372036854775807"),
        ("100000000000000000000000000000000000000000Ei", "9223372036854775807"),
        // Not a whole number, so with a decimal suffix.
        ("1.0001Ki", "1024102400u"),
        ("0.1Ki", "102400m"),
        ("0.00000000000000000000000000000000000000000000000001Ki", "1n"),
    ] {
        assert_eq!(quantity(text).to_string(), expected, "{text}");
    }
}

#[test]
fn what_is_no_quantity_is_refused() {
    for (text, why) in [
        ("", ParseError::Format),
        ("x", ParseError::Format),
        ("1 Gi", ParseError::Format),
        (" 1", ParseError::Format),
        ("1 ", ParseError::Format),
        ("1.2.3", ParseError::Number),
        ("Gi", ParseError::Format),
        ("1GiB", ParseError::Format),
        ("--1", ParseError::Format),
        ("1e", ParseError::Suffix),
        ("1i", ParseError::Suffix),
        ("1ki", ParseError::Suffix),
        ("1e9999999999", ParseError::Suffix),
        (".", ParseError::Format),
        ("-", ParseError::Format),
        ("1111111111111111111111111111111111111111", ParseError::TooLong),
    ] {
        assert_eq!(Quantity::parse(text), Err(why), "{text}");
    }
}

#[test]
fn a_sum_is_written_as_its_first_part() {
    let sum = |a: &str, b: &str| (quantity(a) + quantity(b)).to_string();
    assert_eq!(sum("0", "512Mi"), "512Mi");
    assert_eq!(sum("512Mi", "16Mi"), "528Mi");
    assert_eq!(sum("300m", "0.7"), "1");
    assert_eq!((Quantity::ONE - quantity("3")).to_string(), "-2");
    assert_eq!((quantity("10Gi") * 8).to_string(), "80Gi");
    assert_eq!((quantity("1.5Ki") * 2).to_string(), "3Ki");
}

#[test]
fn counts_are_rounded_away_from_zero_and_never_overflow() {
    assert_eq!(quantity("1.5").rounded_up().to_string(), "2");
    assert_eq!(quantity("-1.5").rounded_up().to_string(), "-2");
    assert_eq!((quantity("1n").value(), quantity("1n").milli_value()), (1, 1));
    assert_eq!(quantity("-1n").value(), -1);
    assert_eq!(quantity("100m").milli_value(), 100);
    assert_eq!(quantity("1Ki").milli_value(), 1_024_000);
    assert_eq!((quantity("1e99").value(), quantity("-1e99").value()), (i64::MAX, i64::MIN));
    assert_eq!(quantity("1e2147483646").scaled(u32::MAX), i128::MAX);
    assert_eq!((quantity("1e2147483647") + Quantity::ONE).to_string(), "10e2147483646");
}

#[test]
fn numbers_of_json_are_quantities_as_well() {
    assert_eq!(serde_json::from_str::<Quantity>("1.5").unwrap(), quantity("1500m"));
    assert_eq!(serde_json::from_str::<Quantity>("\"2Gi\"").unwrap(), quantity("2048Mi"));
    assert!(serde_json::from_str::<Quantity>("null").is_err());
    assert_eq!(serde_json::to_string(&quantity("0.5")).unwrap(), "\"500m\"");
}

/// A number in billionths, exactly, as another way to reckon.
fn billionths(text: &str) -> i128 {
    quantity(text).scaled(9)
}

fn some_text() -> impl Strategy<Value = String> {
    let suffix = prop::sample::select(vec![
        "", "n", "u", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "e3", "E-2",
    ]);
    ("[+-]?", 0..1_000_000_u64, prop::option::of("[0-9]{1,12}"), suffix).prop_map(
        |(sign, whole, fraction, suffix)| {
            let fraction = fraction.map_or(String::new(), |fraction| format!(".{fraction}"));
            format!("{sign}{whole}{fraction}{suffix}")
        },
    )
}

proptest! {
    #[test]
    fn what_is_printed_reads_as_the_same_number(text in some_text()) {
        let one = quantity(&text);
        let printed = one.to_string();
        prop_assert_eq!(quantity(&printed), one);
        prop_assert_eq!(quantity(&printed).to_string(), printed, "canonical");
    }

    #[test]
    fn sums_and_order_are_those_of_the_numbers(a in some_text(), b in some_text()) {
        let (one, other) = (quantity(&a), quantity(&b));
        prop_assert_eq!((one + other).scaled(9), billionths(&a) + billionths(&b));
        prop_assert_eq!((one - other).scaled(9), billionths(&a) - billionths(&b));
        prop_assert_eq!(one.cmp(&other), billionths(&a).cmp(&billionths(&b)));
        prop_assert_eq!(one == other, billionths(&a) == billionths(&b));
        prop_assert_eq!(one + other, other + one);
    }

    #[test]
    fn multiples_are_repeated_sums(text in some_text(), count in 0..20_i64) {
        let one = quantity(&text);
        prop_assert_eq!(one * count, (0..count).map(|_| one).sum());
    }

    #[test]
    fn the_order_is_total_also_between_very_large_and_very_small_ones(
        all in prop::collection::vec(("-?[1-9][0-9]{0,37}", -20..60_i32), 3),
    ) {
        let mut all: Vec<Quantity> = all.iter().map(|(digits, power)| quantity(&format!("{digits}e{power}"))).collect();
        all.sort();
        prop_assert!(all[0] <= all[1] && all[1] <= all[2] && all[0] <= all[2]);
        let sum = all[1] + all[2];
        prop_assert!(!all[1].is_negative() || sum <= all[2]);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[-+0-9.eEinumkKMGTP ]{0,60}") {
        if let Ok(one) = Quantity::parse(&text) {
            let _ = (one + one, one.to_string(), one.scaled(9), one.rounded_up(), one.as_f64());
        }
    }
}
