//! Meshes, whose layout is their sizes: as numbers, and as the shape of an array without elements.

use crate::{LENGTHS, SIDES, THREADS, choices, expect, fits, ones, real, returns};
use isometry_core::argument::{Array, Bar, Given};
use isometry_core::operators::Last;
use isometry_core::operators::mesh::{Layout, Mesh};
use isometry_core::scalar::Scalar;
use isometry_core::{Budget, Cpu, Operator};

/// Stacks of meshes of any layout with up to two angles.
pub fn layouts<T: Scalar>() {
    let budget = Budget::of(THREADS);
    for sizes @ [batch, n, layers] in choices() {
        for (many, len) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            let (theta, numbers, x) = (real::<T>(many), real::<T>(len), ones::<T>(len));
            let (mut bar, mut out) = (real::<T>(many), ones::<T>(len));
            for layout in [Layout::BrickLeft, Layout::BrickRight, Layout::Fft] {
                for last in [Last::None, Last::Signs(&numbers), Last::Phases(&numbers)] {
                    let made = || Mesh::<T>::new((n, layers, layout), batch, &theta, Some(&numbers), last);
                    returns("Mesh::new", &sizes, || made().map(drop));
                    let made = Mesh::<T>::new((n, layers, layout), batch, &theta, None, last);
                    let Ok(op) = made else { continue };
                    assert_eq!((op.batch(), op.shape()), (batch, (n, n)), "{sizes:?}");
                    for rows in [0, 1, 2, usize::MAX] {
                        let (bars, good) =
                            (&mut [Bar::None, Bar::Real(&mut bar)], fits(len, &[batch, rows, n]));
                        expect("apply_vjp", &sizes, good, || {
                            op.apply_vjp(None, &x, &x, rows, SIDES[rows % 2], bars, Some(&mut out), &budget)
                        });
                    }
                }
            }
        }
    }
}

pub fn meshes<T: Scalar>() {
    let budget = Budget::of(THREADS);
    for sizes @ [n, layers, rows] in choices() {
        for (many, len) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            let (theta, x) = (real::<T>(many), ones::<T>(len));
            let (mut bar, mut out) = (real::<T>(many), ones::<T>(len));
            let (none, own) = (Given { shape: &[], array: Array::None }, [many]);
            let theta = Given { shape: &own, array: Array::Real(&theta) };
            for kind in 0..5 {
                let shape = [n, layers, kind, 0];
                let frame = Given { shape: &shape, array: Array::Own(&[]) };
                let given = [frame, theta, none, none, none];
                if rows == 0 {
                    returns("Mesh::of", &sizes, || Mesh::of(&given).map(drop));
                }
                let Ok(op) = Mesh::of(&given) else { continue };
                let square = fits(len, &[n, n]);
                expect("matrix", &sizes, square, || op.matrix(&mut out, None, &budget));
                expect("matrix_vjp", &sizes, square, || {
                    op.matrix_vjp(None, &x, &mut [Bar::None, Bar::Real(&mut bar)], &budget)
                });
                for side in SIDES {
                    let good = fits(len, &[rows, n]);
                    expect("apply", &sizes, good, || op.apply(&x, rows, side, &mut out, None, &budget));
                    expect("apply_vjp", &sizes, good, || {
                        let (bars, out) = (&mut [Bar::None, Bar::Real(&mut bar)], Some(&mut out[..]));
                        op.apply_vjp(None, &x, &x, rows, side, bars, out, &budget)
                    });
                }
            }
        }
    }
}
