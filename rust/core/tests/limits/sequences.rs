//! Activations and recurrences.

use crate::{LENGTHS, SIZES, THREADS, choices, expect, fits, ones, real, returns};
use isometry_core::Budget;
use isometry_core::activation::{Activation, NAMES, activate, activate_vjp};
use isometry_core::argument::Bar;
use isometry_core::operators::{Last, dense::Dense, householder::Householder};
use isometry_core::recurrence::Run;
use isometry_core::recurrence::{self, Checkpoint, Cotangent, Sequence, Trajectory, Written};
use isometry_core::scalar::Scalar;

pub fn activations<T: Scalar>() {
    let all = NAMES.map(|name| Activation::parse(name, 0.5).unwrap());
    for sizes @ [rows, n] in choices() {
        for (len, units) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            for activation in all {
                let (z, numbers) = (ones::<T>(len), real::<T>(units));
                let (mut out, mut bar) = (ones::<T>(len), real::<T>(units));
                let own = activation.bias_units(n);
                for bias in [None, Some(&numbers[..])] {
                    let checked = activation.check_sizes(n, T::PARTS == 2, bias.map(<[T::Real]>::len));
                    let good = checked.is_ok();
                    assert!(!good || bias.map_or(own == 0, |bias| own > 0 && own == bias.len()), "{sizes:?}");
                    let good = good && fits(len, &sizes);
                    expect("activation::activate", &sizes, good, || {
                        activate(&z, rows, n, activation, bias, &mut out, THREADS)
                    });
                    expect("activation::activate_vjp", &sizes, good, || {
                        let bar = bias.map(|_| &mut bar[..]);
                        activate_vjp(&z, rows, n, activation, bias, &z, &mut out, bar, THREADS)
                    });
                }
            }
        }
    }
    assert!(Activation::parse("none", 0.0).is_err() && Activation::parse("leaky_relu", f64::NAN).is_err());
}

/// Whether x has these sizes and, without features, no more steps times sequences than a call takes.
fn inputs(len: usize, [steps, batch, features]: [usize; 3]) -> bool {
    let rows = steps.saturating_mul(batch);
    fits(len, &[steps, batch, features]) && (features > 0 || rows <= 1 << 24)
}

pub fn sequence<'a, T: Scalar>(sizes: [usize; 4], x: &'a [T], v: &'a [T]) -> Sequence<'a, T> {
    let [steps, batch, features, n] = sizes;
    Sequence { run: Run::new([steps, batch, features, n], x), input_weight: v, bias: None, on_input: false }
}

pub fn recurrences<T: Scalar>() {
    let budget = Budget::of(THREADS);
    for sizes @ [steps, batch, features, n] in choices() {
        let whole = steps > 0 && batch > 0 && n > 0;
        for (len, given) in LENGTHS.into_iter().flat_map(|a| LENGTHS.map(|b| (a, b))) {
            let (x, v, states) = (ones::<T>(len), ones::<T>(given), ones::<T>(1));
            let given = sequence(sizes, &x, &v);
            let good = whole && inputs(len, [steps, batch, features]) && fits(v.len(), &[n, features]);
            let one = fits(1, &[steps, batch, n]);
            let mut out = states.clone();
            let weight = ones::<T>(1);
            let square = fits(1, &[n, n]);
            expect("recurrence::forward", &sizes, good && one && square, || {
                recurrence::forward(&Dense::new(&weight, 1, n, n)?, &given, &mut out, &budget)
            });
            without_states(&given, good && square && fits(1, &[batch, n]), &sizes);
            let (mut own, mut x_bar, mut v_bar) = (ones::<T>(1), x.clone(), v.clone());
            expect("recurrence::backward", &sizes, good && one && square, || {
                let bars = &mut [Bar::Own(&mut x_bar), Bar::Own(&mut v_bar)];
                let (dense, own) = (Dense::new(&weight, 1, n, n)?, &mut [Bar::Own(&mut own)]);
                recurrence::backward(&dense, own, &given, &states, &states, bars, &budget)
            });
            for m in SIZES {
                for vectors in [0, 1] {
                    let vectors = ones::<T>(vectors);
                    let factors = || Householder::new(&vectors, Last::None, 1, n, m);
                    let good = good && one && fits(vectors.len(), &[1, n, m]);
                    expect("recurrence::forward", &sizes, good, || {
                        recurrence::forward(&factors()?, &given, &mut out, &budget)
                    });
                    let mut bar = vectors.clone();
                    expect("recurrence::backward", &sizes, good, || {
                        let (own, states) = (&mut [Bar::Own(&mut bar)], &states);
                        recurrence::backward(&factors()?, own, &given, states, states, &mut [], &budget)
                    });
                }
            }
        }
    }
}

/// The last states alone, and those of a checkpoint.
fn without_states<T: Scalar>(given: &Sequence<'_, T>, good: bool, sizes: &[usize; 4]) {
    let (budget, weight, states, mut last) = (Budget::of(THREADS), ones::<T>(1), ones::<T>(1), ones::<T>(1));
    let dense = || Dense::new(&weight, 1, given.run.n, given.run.n);
    expect("recurrence::forward", sizes, good, || {
        let written = Written { last: Some(&mut last), ..Written::default() };
        recurrence::forward(&dense()?, given, written, &budget)
    });
    returns("Run::sizes", sizes, || Ok(given.run.sizes()));
    for len in LENGTHS {
        let mut marks = ones::<T>(len);
        let kept = Some((Checkpoint::Sqrt, &mut marks[..]));
        let written = Written { last: Some(&mut last), marks: kept, ..Written::default() };
        returns("recurrence::forward", sizes, || recurrence::forward(&dense()?, given, written, &budget));
        for ct in [Cotangent::States(&marks), Cotangent::Last(&marks)] {
            let kept = Trajectory::Marks(Checkpoint::Sqrt, &marks, &states);
            returns("recurrence::backward", sizes, || {
                recurrence::backward(&dense()?, &mut [], given, kept, ct, &mut [], &budget)
            });
        }
    }
}

/// An ensemble does what its caller does, whatever it is told of the sizes; packing compares both lengths.
pub fn ensembles<T: Scalar>() {
    for sizes in choices() {
        returns("recurrence::ensemble", &sizes, || {
            recurrence::ensemble::<T, ()>(vec![(); 2], sizes, &Budget::of(THREADS), |(), _| Ok(()))
        });
    }
    for sizes @ [n, k] in choices() {
        returns("recurrence::packed", &sizes, || Ok(recurrence::packed::<T>(n, k)));
        for len in LENGTHS {
            returns("recurrence::pack", &sizes, || {
                recurrence::pack(
                    &ones::<T>(len),
                    n,
                    k,
                    &mut real::<T>(recurrence::packed::<T>(n, k).min(FEW)),
                )
            });
        }
    }
}

/// More numbers than a packed matrix of two elements has.
const FEW: usize = 1 << 10;
