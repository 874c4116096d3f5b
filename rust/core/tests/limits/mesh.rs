//! Meshes, whose layout is their sizes: as numbers, and as the shape of an array without elements.

use crate::{LENGTHS, SIDES, THREADS, any, choices, expect, fits, ones, real, returns};
use isometry_core::argument::{Array, Bar, Given};
use isometry_core::operators::mesh::{Layout, Mesh};
use isometry_core::operators::{Last, view};
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
    for sizes @ [n, layers] in choices() {
        for many in LENGTHS {
            let (theta, mut bar) = (real::<T>(many), real::<T>(many));
            let (none, own) = (Given::<T> { shape: &[], array: Array::None }, [many]);
            let theta = Given { shape: &own, array: Array::Real(&theta) };
            for kind in 0..5 {
                let shape = [n, layers, kind, 0];
                let frame = Given { shape: &shape, array: Array::Own(&[]) };
                let given = [frame, theta, none, none, none];
                returns("operators::view", &sizes, || view("mesh", &given).map(drop));
                if let Ok(op) = view("mesh", &given) {
                    any::operator(&*op, &mut [Bar::None, Bar::Real(&mut bar)], &sizes);
                }
            }
        }
    }
}
