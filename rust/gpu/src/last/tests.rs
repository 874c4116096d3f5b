//! The angles of a last factor in double precision; results with its signs are compared in `hosted/tests.rs`.

use super::*;
use crate::testing::{device, fetched, sent};
use isometry_core::scalar::c64;

fn factors(last: &Last) -> Vec<c64> {
    let mut record = Record::new(last.factors.context()).unwrap();
    last.prepare(&mut record).unwrap();
    record.submit().unwrap();
    fetched(&last.factors)
}

#[test]
fn a_part_of_a_diagonal_is_refused() {
    let Some(context) = device() else { return };
    let five = sent(&context, Field::Real, &[1, 5], &[c64::from(1.0); 5]);
    for (last, name) in [
        (Last::signs(Field::Real, &five, 3), "signs"),
        (Last::signs(Field::Complex, &five, 3), "signs"),
        (Last::phases(&five, 3), "phases"),
    ] {
        let message = last.unwrap_err().to_string();
        assert!(message.starts_with(name), "{message}");
    }
    let complex = Array::room(&context, Field::Complex, &[4]).unwrap();
    assert!(Last::signs(Field::Complex, &complex, 2).is_err());
}

/// Distance in units in the last place of the exact number.
fn units(got: f64, exact: f64) -> f64 {
    let exponent = exact.abs().max(1e-30).log2().floor();
    (got - exact).abs() / 2f64.powf(exponent - 23.0)
}

#[test]
fn angles_of_all_sizes_become_points_of_the_circle() {
    let Some(context) = device() else { return };
    let count = 60_000;
    // from 1e-8 to 3e38 on a logarithmic scale, up to 1e4 evenly, and the numbers beside the multiples of pi/4
    let even = (0..count).map(|i| (1e4 * f64::from(i) / f64::from(count)) as f32);
    let wide = (0..count).map(|i| 10f64.powf(46.5 * f64::from(i) / f64::from(count) - 8.0) as f32);
    let beside = (1..count).map(|i| (f64::from(i) * std::f64::consts::FRAC_PI_4) as f32);
    let beside = beside.flat_map(|x| [x, x.next_up(), x.next_down()]);
    let all: Vec<f32> = even.chain(wide).chain(beside).flat_map(|x| [x, -x]).chain([0.0, f32::MAX]).collect();
    let given = Array::upload(&context, Field::Real, &[1, all.len()], &all).unwrap();
    let found = factors(&Last::phases(&given, all.len()).unwrap());
    let (mut worst, mut place) = (0.0, 0.0);
    for (x, e) in all.iter().zip(&found) {
        let (sin, cos) = f64::from(*x).sin_cos();
        let off = units(e.re, cos).max(units(e.im, sin));
        if off.is_nan() || off > worst {
            (worst, place) = (off, *x);
        }
    }
    eprintln!("sin and cos: {worst:.2} units at {place:e}");
    assert!(worst <= 2.0, "{worst} at {place:e}");
}

#[test]
fn angles_that_are_not_finite_are_seen() {
    let Some(context) = device() else { return };
    let given =
        Array::upload(&context, Field::Real, &[1, 3], &[f32::NAN, f32::INFINITY, f32::NEG_INFINITY]).unwrap();
    let found = factors(&Last::phases(&given, 3).unwrap());
    assert!(found.iter().all(|e| !e.re.is_finite() && !e.im.is_finite()), "{found:?}");
}
