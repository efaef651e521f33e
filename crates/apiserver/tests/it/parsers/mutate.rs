//! Bends bytes.

use crate::dice::Dice;

/// What parsers stumble over.
const ODD: [&[u8]; 22] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\u0000",
    b"\\ud800",
    b"null",
    b"-",
    b"1e999",
    b"9223372036854775808",
    b"0.1",
    b"%",
    b"%00",
    b"..",
    b"//",
    b"\xff\xfe",
    b"\0",
    b"=",
    b",",
    b"(",
    b"$patch",
];

/// One to a few changes of an entry.
pub(super) fn mutate(dice: &mut Dice, entries: &[Vec<u8>]) -> Vec<u8> {
    let mut input = dice.pick(entries).clone();
    for _ in 0..=dice.below(4) {
        let place = dice.below(input.len() + 1);
        match dice.below(8) {
            0 if place < input.len() => input[place] ^= 1 << dice.below(8),
            1 => {
                let end = (place + 1 + dice.below(8)).min(input.len());
                input.drain(place.min(end)..end);
            }
            2 => drop(input.splice(place..place, dice.pick(&ODD).iter().copied())),
            3 => {
                let end = (place + dice.below(20)).min(input.len());
                let again = input[place.min(end)..end].to_vec();
                let times = *dice.pick(&[1, 1, 1, 2, 50]);
                input.splice(place..place, again.repeat(times));
            }
            4 => {
                let other = dice.pick(entries);
                let (from, to) = (dice.below(other.len() + 1), dice.below(other.len() + 1));
                input.splice(place..place, other[from.min(to)..from.max(to)].iter().copied());
            }
            5 if dice.chance(20) => input.truncate(place),
            6 if dice.chance(10) => {
                let depth = *dice.pick(&[10, 200, 5_000]);
                input.splice(place..place, dice.pick(&ODD).repeat(depth));
            }
            _ if place < input.len() => input[place] = dice.below(256) as u8,
            _ => {}
        }
    }
    input
}
