//! The positions of the pairs of each layer.

use crate::error::{Error, Result};
use crate::kernels::reserved;
use crate::sizes::work;
use isometry_kernels::mesh::Layer;

/// The arrangement of the pairs in layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// The leftmost layer has the pairs (0, 1), (2, 3), ..., its neighbour (1, 2), (3, 4), ..., and so on.
    BrickLeft,
    /// The same, but the layer applied first has (0, 1), (2, 3), ...
    BrickRight,
    /// Distances n/2, n/4, ..., 1.
    Fft,
}

impl Layout {
    /// By its number 1, 2, 3.
    pub(super) fn of(number: usize) -> Result<Self> {
        match number {
            1 => Ok(Layout::BrickLeft),
            2 => Ok(Layout::BrickRight),
            3 => Ok(Layout::Fft),
            _ => Err(Error::value("frame", format!("must have kind 1, 2 or 3, not {number}"))),
        }
    }
}

/// The number of pairs of all layers; an error where there is no such mesh. It saturates, so that huge counts
/// match no array.
pub fn pairs(n: usize, count: usize, layout: Layout) -> Result<usize> {
    if n == 0 {
        return Err(Error::value("frame", "must have n of at least 1"));
    }
    if layout == Layout::Fft {
        if !n.is_power_of_two() || count != n.ilog2() as usize {
            return Err(Error::value(
                "frame",
                format!("of the fft layout must have n a power of two, not {n}"),
            ));
        }
        return Ok(work(&[count, n / 2]));
    }
    if count == 0 {
        return Err(Error::value("frame", "must have a layer at least"));
    }
    Ok(work(&[count.div_ceil(2), n / 2]).saturating_add(work(&[count / 2, (n - 1) / 2])))
}

/// The number of layers that have pairs.
pub fn count(n: usize, count: usize, layout: Layout) -> usize {
    match (n, layout) {
        (0 | 1, _) => 0,
        (2, Layout::BrickLeft | Layout::BrickRight) => count.div_ceil(2),
        _ => count,
    }
}

/// The layers that have pairs, leftmost first, of a mesh that has some.
pub fn layers(n: usize, count: usize, layout: Layout) -> Result<Vec<Layer>> {
    let (mut found, mut first) = (reserved(count)?, 0);
    for l in 0..count {
        let (start, pairs, distance) = match layout {
            Layout::Fft => (0, n / 2, n >> (l + 1)),
            _ => {
                let from_left = if layout == Layout::BrickLeft { l } else { count - 1 - l };
                let start = from_left % 2;
                (start, (n - start) / 2, 1)
            }
        };
        if pairs > 0 {
            found.push(Layer { start, pairs, distance, first });
        }
        first += pairs;
    }
    Ok(found)
}
