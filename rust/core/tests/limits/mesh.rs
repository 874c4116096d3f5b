//! Meshes, whose sizes stand in the shape of an array without elements.

use crate::{LENGTHS, SIDES, THREADS, choices, expect, fits, ones, real, returns};
use isometry_core::argument::{Array, Bar, Given};
use isometry_core::operators::mesh::Mesh;
use isometry_core::scalar::Scalar;
use isometry_core::{Budget, Cpu};

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
