//! Matrices beside others that are repaired, and gradients that are refused.

use super::Parameters;
use crate::argument::Bar;
use crate::operators::Last;
use crate::scalar::{Real, Scalar};
use crate::testing::square::unitarity;
use crate::testing::{every_type, within_work};
use crate::{Budget, Cpu, operators::cayley::Cayley};

fn neighbours<T: Scalar>() {
    for n in [3, 4, 8, 15, 32].into_iter().filter(|n| within_work(&[*n, *n, *n])) {
        let batch = 29;
        let mut p = Parameters::<T>::random(batch, n, 2, 1.0);
        let len = p.upper.len() / batch;
        let mut before = vec![T::zero(); batch * n * n];
        p.view().matrix(&mut before, None, &Budget::of(1)).unwrap();
        for (e, x) in p.upper.iter_mut().enumerate() {
            if (e / len).is_multiple_of(2) {
                // matrices that fail the check next to others, and one that holds NaN
                *x *= T::real(T::Real::of(if e / len == 4 { f64::NAN } else { 1e3 }));
            }
        }
        let mut after = vec![T::zero(); batch * n * n];
        p.view().matrix(&mut after, None, &Budget::of(1)).unwrap();
        for b in 0..batch {
            let part = b * n * n..(b + 1) * n * n;
            if b % 2 == 1 {
                assert!(before[part.clone()] == after[part], "n {n}: neighbours change matrix {b}");
            } else if b == 4 {
                assert!(after[part].iter().all(|x| !x.finite()), "n {n}: NaN in, NaN out");
            } else {
                assert!(unitarity(&after[part], n) < 20.0);
            }
        }
    }
}

#[test]
fn neighbours_do_not_change_a_bit() {
    every_type!(neighbours());
}

#[test]
fn bad_gradients_are_named() {
    let (upper, w, mut row) = ([0.0f32], [0.0f32; 4], [0.0f32; 2]);
    let view = Cayley::new(&upper, None, Last::None, 1, 2).unwrap();
    let refused = |bars: &mut [Bar<'_, f32>]| {
        view.matrix_vjp(Some(&w), &w, bars, &Budget::of(1)).unwrap_err().to_string()
    };
    let error = refused(&mut [Bar::None, Bar::Real(&mut row)]);
    assert_eq!(error, "diagonal_bar is wanted, but there is no such argument");
    assert_eq!(refused(&mut [Bar::Own(&mut row)]), "upper_bar: expected 1 elements, got 2");
    let signs = [1.0; 2];
    let view = Cayley::new(&upper, None, Last::Signs(&signs), 1, 2).unwrap();
    let bars = &mut [Bar::None, Bar::None, Bar::Real(&mut row)];
    let error = view.matrix_vjp(Some(&w), &w, bars, &Budget::of(1)).unwrap_err().to_string();
    assert_eq!(error, "signs_bar is wanted, but the argument is fixed");
}
