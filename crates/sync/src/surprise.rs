//! How well a host's last correction has foretold the next one. Residuals of the mesh say nothing of an
//! edge that is in no loop, nor of what all edges of a host have in common; this does.

use crate::{correction::Correction, line::WINDOWS};

/// Of the mean square of surprises: weight of the newest.
const GAIN: f64 = 0.25;
/// Standard deviation of a host's first correction at least, ns: its drift is that of one window.
const FIRST_SIGMA_NS: f64 = 1_000.0;

/// What one host's corrections have shown so far.
#[derive(Debug, Clone, Copy)]
pub struct Surprise {
    last: Correction,
    /// Mean square of what was foretold wrongly, ns^2; none before the second window.
    square: Option<f64>,
}

impl Surprise {
    /// With a new correction, whose sigma it raises if it has to.
    pub fn with(before: Option<Surprise>, correction: &mut Correction) -> Surprise {
        let last = *correction;
        let square = before.map(|before| {
            let foretold = before.last.offset_at(last.reference);
            let off = last.offset_ns.saturating_sub(foretold) as f64;
            let mean = before.square.unwrap_or(off * off);
            mean + GAIN * (off * off - mean)
        });
        // Two errors make a surprise; lines share all pairs but one window's, so it shows only a part.
        let part = 2.0 / WINDOWS as f64;
        let sigma_ns = square.map_or(FIRST_SIGMA_NS, |square| (square / part).sqrt());
        correction.error.sigma_ns = correction.error.sigma_ns.max(sigma_ns);
        Surprise { last, square }
    }
}
