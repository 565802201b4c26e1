// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Formats numbers with three significant figures.

/// Separator of thousands: a space without a line break.
const GAP: char = '\u{202f}';

/// `value` with three significant figures; very small and very large ones with a power of ten.
pub fn three(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".into() } else { "-".into() };
    }
    let scientific = format!("{value:.2e}");
    // Of the rounded number: 999.9 is 1000.
    let exponent: i32 = match scientific.split_once('e') {
        Some((_, exponent)) => exponent.parse().unwrap_or(0),
        None => 0,
    };
    match exponent {
        -3..=2 => format!("{value:.*}", (2 - exponent) as usize),
        3..=6 => {
            let step = 10f64.powi(exponent - 2);
            grouped((value / step).round() * step)
        }
        _ => scientific,
    }
}

/// A number of the paper, with exactly its figures.
pub fn exact(value: f64) -> String {
    match value.abs() {
        a if (1e3..1e15).contains(&a) && value.fract() == 0.0 => grouped(value),
        _ => value.to_string(),
    }
}

fn grouped(integer: f64) -> String {
    let digits = format!("{:.0}", integer.abs());
    let mut text = String::from(if integer < 0.0 { "-" } else { "" });
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(GAP);
        }
        text.push(digit);
    }
    text
}

/// The unit after a number, with its space.
pub fn unit(unit: &str) -> String {
    match unit {
        "" => String::new(),
        "x" => "\u{d7}".into(),
        _ => format!("\u{a0}{unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_figures_are_shown() {
        let shown = |value| three(value).replace(GAP, " ");
        assert_eq!(shown(0.0), "0");
        assert_eq!(shown(2.6), "2.60");
        assert_eq!(shown(-36.71), "-36.7");
        assert_eq!(shown(0.0123456), "0.0123");
        assert_eq!(shown(999.9), "1 000");
        assert_eq!(shown(204_704.0), "205 000");
        assert_eq!(shown(112_062_656.0), "1.12e8");
        assert_eq!(shown(0.000_012_3), "1.23e-5");
        assert_eq!(shown(f64::NAN), "-");
    }

    #[test]
    fn what_somebody_else_wrote_keeps_its_figures() {
        assert_eq!(exact(2.6), "2.6");
        assert_eq!(exact(61.0), "61");
        assert_eq!(exact(12_345.0).replace(GAP, " "), "12 345");
    }
}
