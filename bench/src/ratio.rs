//! A figure of one subject, divided by that of another one.

use crate::figures::{Figure, Figures, median};

/// A ratio: its median and its range over the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) median: f64,
    /// Of the round in which it was lowest.
    lowest: f64,
    /// Of the round in which it was highest.
    highest: f64,
    rounds: usize,
}

impl Ratio {
    /// Nothing where no round has both figures.
    pub(crate) fn of_rounds(own: &[Figures], base: &[Figures], figure: Figure) -> Option<Self> {
        let in_round = |(own, base): (&Figures, &Figures)| own.ratios_to(base).get(figure);
        let ratios: Vec<f64> = own.iter().zip(base).filter_map(in_round).collect();
        let lowest = ratios.iter().copied().reduce(f64::min)?;
        let highest = ratios.iter().copied().reduce(f64::max)?;
        Some(Self { rounds: ratios.len(), median: median(ratios), lowest, highest })
    }

    /// The range over the rounds, if they differ.
    pub(crate) fn range(self) -> Option<(f64, f64)> {
        (self.lowest < self.highest).then_some((self.lowest, self.highest))
    }

    /// True if there were at least two rounds, and the ratio was above 1 in each.
    pub(crate) fn is_above_one(self) -> bool {
        self.rounds > 1 && self.lowest > 1.0
    }

    /// True if there were at least two rounds, and the ratio was below 1 in each.
    pub(crate) fn is_below_one(self) -> bool {
        self.rounds > 1 && self.highest < 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(values: &[f64]) -> Vec<Figures> {
        values.iter().map(|value| Figures::default().with(Figure::P50, *value)).collect()
    }

    #[test]
    fn a_ratio_has_the_range_of_its_rounds() {
        let ratio = |own: &[f64], base: &[f64]| Ratio::of_rounds(&rounds(own), &rounds(base), Figure::P50);
        let slower = ratio(&[12.0, 15.0, 11.0], &[10.0, 10.0, 10.0]).unwrap();
        assert_eq!((slower.median, slower.range()), (1.2, Some((1.1, 1.5))));
        assert!(slower.is_above_one() && !slower.is_below_one());
        let unclear = ratio(&[12.0, 9.0], &[10.0, 10.0]).unwrap();
        assert!(!unclear.is_above_one() && !unclear.is_below_one());
        let once = ratio(&[12.0], &[10.0]).unwrap();
        assert_eq!((once.range(), once.is_above_one()), (None, false));
        assert_eq!(ratio(&[1.0], &[]), None);
    }
}
