//! The four calls that every operator has, and operators that need no more.

use crate::{LENGTHS, SIDES, SIZES, THREADS, choices, expect, fits, ones, real, returns};
use isometry_core::argument::{Array, Bar, Given, Kind};
use isometry_core::internal::{Beside, BesideMut, Blocks};
use isometry_core::operators::bounded_svd::BoundedSvd;
use isometry_core::operators::circulant::Circulant;
use isometry_core::operators::dense::Dense;
use isometry_core::operators::givens::Givens;
use isometry_core::operators::hadamard::{self, Hadamard};
use isometry_core::operators::{OBJECTS, check_values, route, view};
use isometry_core::recurrence::{self, Cotangent, Run, Sequence, Trajectory, Workload, Written};
use isometry_core::scalar::Scalar;
use isometry_core::{Budget, Cpu};

/// Arrays of every length, beside rows of every number; `bars` fit.
pub fn operator<T: Scalar>(op: &dyn Cpu<T>, bars: &mut [Bar<'_, T>], sizes: &[usize]) {
    let (budget, batch, (p, q)) = (Budget::of(THREADS), op.batch(), op.shape());
    for len in LENGTHS {
        let (x, mut out) = (ones::<T>(len), ones::<T>(len));
        let square = fits(len, &[batch, p, q]);
        expect("matrix", sizes, square, || op.matrix(&mut out, None, &budget));
        expect("matrix_vjp", sizes, square, || op.matrix_vjp(None, &x, bars, &budget));
        for (rows, side) in SIZES.into_iter().flat_map(|rows| SIDES.map(|side| (rows, side))) {
            let good = fits(len, &[batch, rows, p]) && fits(len, &[batch, rows, q]);
            expect("apply", sizes, good, || op.apply(&x, rows, side, &mut out, None, &budget));
            expect("apply_vjp", sizes, good, || {
                op.apply_vjp(None, &x, &x, rows, side, bars, Some(&mut out), &budget)
            });
            returns("apply_vjp", sizes, || op.apply_vjp(Some(&x), &x, &x, rows, side, bars, None, &budget));
            expect("apply_vjp", sizes, false, || {
                op.apply_vjp(None, &x, &x, rows, side, bars, Some(&mut ones(len + 1)), &budget)
            });
        }
    }
}

/// Arguments of every object by name, with shapes and lengths of any size.
pub fn objects<T: Scalar>() {
    for sizes @ [steps, batch, _] in choices::<3>() {
        let workload = Workload { steps, batch, gated: false };
        for (object, arguments) in OBJECTS {
            let shapes = vec![&sizes[..]; arguments.len()];
            returns("operators::route", &sizes, || route(object, &shapes, workload));
            assert!(route(object, &[], workload).is_err());
        }
        for len in LENGTHS {
            let (own, numbers, integers) = (ones::<T>(len), real::<T>(len), vec![0i64; len]);
            for (object, arguments) in OBJECTS {
                let given: Vec<_> = arguments
                    .iter()
                    .map(|argument| Given {
                        shape: &sizes[..(argument.rank() + 1).min(sizes.len())],
                        array: match argument.kind {
                            Kind::Integer => Array::Integers(&integers),
                            kind if kind.real() => Array::Real(&numbers),
                            _ => Array::Own(&own),
                        },
                    })
                    .collect();
                returns("operators::view", &sizes, || view(object, &given).map(drop));
                returns("operators::check_values", &sizes, || check_values(object, &given));
            }
        }
    }
}

pub fn hadamards<T: Scalar>() {
    for sizes @ [batch, rounds, n] in choices() {
        for len in LENGTHS {
            let (signs, mut bar) = (real::<T>(len), real::<T>(len));
            let order = hadamard::Order::of(n).is_some();
            let good = order && fits(len, &sizes) && fits(0, &[0, batch, n, n]);
            let made = || Hadamard::<T>::new(&signs, (batch, rounds, n));
            expect("Hadamard::new", &sizes, good, || made().map(drop));
            if let Ok(op) = made() {
                operator(&op, &mut [Bar::Real(&mut bar)], &sizes);
            }
        }
    }
    for sizes @ [n] in choices() {
        for (len, other, side) in LENGTHS.into_iter().flat_map(|len| {
            [len, len + 1, 0].into_iter().flat_map(move |other| SIDES.map(|side| (len, other, side)))
        }) {
            let (x, mut out) = (ones::<T>(len), ones::<T>(other));
            let good = hadamard::Order::of(n).is_some() && len == other && fits(len, &[1, len / n.max(1), n]);
            expect("hadamard::transform", &sizes, good, || {
                hadamard::transform(&x, n, 2.0, side, &mut out, THREADS)
            });
        }
    }
}

pub fn givens<T: Scalar>() {
    for sizes @ [batch, n, m] in choices() {
        for (given, planes) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            let (angles, mut bar) = (real::<T>(given), real::<T>(given));
            let pairs: Vec<i64> = (0..2 * planes as i64).map(|at| at % 2).collect();
            let good =
                fits(given, &[batch, m]) && fits(2 * planes, &[batch, m, 2]) && (planes == 0 || n >= 2);
            let made = || Givens::<T>::new(&angles, &pairs, batch, n, m);
            expect("Givens::new", &sizes, good, || made().map(drop));
            if let Ok(op) = made() {
                operator(&op, &mut [Bar::None, Bar::Real(&mut bar)], &sizes);
            }
        }
    }
}

pub fn bounded_svds<T: Scalar>() {
    for sizes @ [batch, n, k, r] in choices() {
        for (us, vs) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            for (logits, margins) in [(0, 0), (1, 1), (2, 1), (1, 0), (2, 2)] {
                let (u, v, logits, margin) =
                    (ones::<T>(us), ones::<T>(vs), real::<T>(logits), real::<T>(margins));
                let good = r > 0
                    && fits(us, &[batch, n, r])
                    && fits(logits.len(), &[batch, r])
                    && fits(vs, &[batch, k, r])
                    && fits(margins, &[batch])
                    && fits(0, &[0, batch, n, k]);
                let made = || BoundedSvd::<T>::new((&u, &v), &logits, &margin, sizes);
                expect("BoundedSvd::new", &sizes, good, || made().map(drop));
                let Ok(op) = made() else { continue };
                let (mut u, mut v, mut sigma) = (u.clone(), v.clone(), logits.clone());
                let bars = &mut [Bar::Own(&mut u), Bar::Real(&mut sigma), Bar::Own(&mut v)];
                operator(&op, bars, &sizes);
            }
        }
    }
}

pub fn circulants<T: Scalar>() {
    for sizes @ [batch, n] in choices() {
        for len in LENGTHS {
            let (phases, mut bar) = (real::<T>(len), real::<T>(len));
            let good = T::PARTS == 2 && n > 0 && fits(len, &sizes) && fits(0, &[0, batch, n, n]);
            let made = || Circulant::<T>::new(&phases, batch, n);
            expect("Circulant::new", &sizes, good, || made().map(drop));
            if let Ok(op) = made() {
                operator(&op, &mut [Bar::Real(&mut bar)], &sizes);
            }
        }
    }
}

pub fn blocks<T: Scalar>() {
    for sizes @ [nb, p, q, rows] in choices() {
        for (weights, len) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            let (weight, x) = (ones::<T>(weights), ones::<T>(len));
            let blocks = Blocks::new(&weight, (nb, p, q));
            returns("Blocks::new", &sizes, || Ok(blocks));
            let good = fits(weights, &[nb, p, q]) && fits(len, &[rows, nb, q]);
            for other in LENGTHS {
                let good = good && fits(other, &[rows, nb, p]);
                let ct = ones::<T>(other);
                expect("Blocks::apply", &sizes, good, || blocks.apply(&x, rows, &mut ones(other), THREADS));
                for (own, x_bar) in [(weights, len), (weights + 1, len), (weights, len + 1)] {
                    let good = good && (own, x_bar) == (weights, len);
                    let (mut own, mut x_bar) = (ones(own), ones(x_bar));
                    expect("Blocks::apply_vjp", &sizes, good, || {
                        blocks.apply_vjp(&x, &ct, rows, Some(&mut own), Some(&mut x_bar), THREADS)
                    });
                }
            }
        }
    }
}

/// States and cotangents among those of other recurrences, in arrays of every length.
pub fn beside<T: Scalar>() {
    let (weight, x) = ([T::one(); 4], [T::one(); 6]);
    for (len, count, own) in
        LENGTHS.into_iter().flat_map(|len| [0, 1, 3].map(|count| (len, count, 1 + len % 2)))
    {
        let sizes = [len, count, own];
        let run = Run::new([3, 2, 1, own], &x);
        let sequence = Sequence { run, input_weight: &weight[..own], bias: None, on_input: false };
        let w = || Dense::new(&weight[..own * own], 1, own, own);
        let (mut states, ct, budget) = (ones::<T>(len), ones::<T>(len), Budget::of(THREADS));
        let (good, whole) = (fits(len, &[3, 2, count, own]), ones::<T>(6 * own));
        returns("BesideMut::cut", &sizes, || Ok(BesideMut::cut(&mut states, count, own).count()));
        returns("Beside::cut", &sizes, || Ok(Beside::cut(&ct, count, own).count()));
        for beside in BesideMut::cut(&mut states, count, own) {
            let written = Written { beside: Some(beside), ..Written::default() };
            expect("recurrence::forward", &sizes, good, || {
                recurrence::forward(&w()?, &sequence, written, &budget)
            });
        }
        let cts = Beside::cut(&ct, count, own).zip(Beside::cut(&states, count, own));
        for (ct, states) in cts {
            let (states, ct) = (Trajectory::Beside(states), Cotangent::Beside(ct));
            let pull = |states| recurrence::backward(&w()?, &mut [], &sequence, states, ct, &mut [], &budget);
            expect("recurrence::backward", &sizes, good, || pull(states));
            expect("recurrence::backward", &sizes, false, || pull(Trajectory::All(&whole)));
        }
    }
}
