//! Operators against their matrices in double precision.

use super::drawn::part;
use super::{Guarded, fill, near, numbers, wide};
use crate::argument::{Array, Bar};
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::operator::Saves;
use crate::scalar::{Real, Scalar, parts};
use crate::side::Side;

/// The real parts of every argument, in double precision; none of an argument that is not given or not trained.
pub type Numbers = Vec<Vec<f64>>;

/// A cotangent of the matrices, and the gradients that calls found for it.
type Found<W> = (Vec<W>, Vec<Numbers>);

fn arguments<T: Scalar>(op: &dyn Cpu<T>) -> Numbers {
    let list = op.arguments();
    let mut found = Vec::new();
    for i in 0.. {
        let Some(argument) = list.get(i).or(list.last().filter(|last| last.list)) else { break };
        let wide = |x: &[T::Real]| x.iter().map(|x| x.f64()).collect();
        found.push(match op.argument(i) {
            Array::Own(x) if argument.trained => wide(parts(x)),
            Array::Real(x) if argument.trained => wide(x),
            Array::None if argument.list => break,
            _ => Vec::new(),
        });
    }
    found
}

/// Room for the gradients of those arguments that have one.
enum Room<T: Scalar> {
    None,
    Own(Guarded<T>),
    Real(Guarded<T::Real>),
}

/// What a call writes into rooms of the gradients of all arguments, or of one.
fn pulled<T: Scalar>(
    op: &dyn Cpu<T>,
    arguments: &Numbers,
    only: Option<usize>,
    call: impl FnOnce(&mut [Bar<'_, T>]),
) -> Numbers {
    let room = |(i, numbers): (usize, &Vec<f64>)| match op.argument(i) {
        _ if numbers.is_empty() || only.is_some_and(|only| only != i) => Room::None,
        Array::Own(_) => Room::Own(Guarded::new(numbers.len() / T::PARTS)),
        _ => Room::Real(Guarded::new(numbers.len())),
    };
    let mut rooms: Vec<Room<T>> = arguments.iter().enumerate().map(room).collect();
    let bar = |room| match room {
        &mut Room::None => Bar::None,
        Room::Own(own) => Bar::Own(own.inner()),
        Room::Real(real) => Bar::Real(real.inner()),
    };
    call(&mut rooms.iter_mut().map(bar).collect::<Vec<_>>());
    let numbers = |room: Room<T>| match room {
        Room::None => vec![],
        Room::Own(own) => wide(parts(own.read())),
        Room::Real(real) => wide(real.read()),
    };
    rooms.into_iter().map(numbers).collect()
}

/// Directions in which gradients are compared: every number by itself, or where there are many, some of all together.
fn ways(count: usize) -> Vec<Vec<f64>> {
    if count <= 32 {
        return (0..count).map(|i| (0..count).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    }
    (0..8).map(|seed| fill(count, 1.0 / (count as f64).sqrt(), 10 + seed)).collect()
}

/// The derivatives in the directions `ways` for each of the cotangents of W, by central differences of the dense matrix.
fn differences<W: Scalar<Real = f64>>(
    arguments: &Numbers,
    ways: &[Vec<f64>],
    dense: &dyn Fn(&Numbers) -> Vec<W>,
    cotangents: &[Found<W>],
) -> Vec<Vec<f64>> {
    let mut found = vec![vec![]; cotangents.len()];
    for way in ways {
        let step = 1e-5;
        let at = |by: f64| {
            let mut moved = arguments.clone();
            moved.iter_mut().flatten().zip(way).for_each(|(x, w)| *x += by * w);
            dense(&moved)
        };
        let (more, less) = (at(step), at(-step));
        for (found, (ct, _)) in found.iter_mut().zip(cotangents) {
            let along = ct.iter().zip(more.iter().zip(&less)).map(|(c, (a, b))| (c.conj() * (*a - *b)).re());
            found.push(along.sum::<f64>() / (2.0 * step));
        }
    }
    found
}

/// All calls against the matrices W that `dense` gives for the real parts of the trained arguments, and the gradients of the arguments
/// against its differences.
pub fn check<T: Scalar>(
    op: &dyn Cpu<T>,
    rows: usize,
    threads: &[usize],
    dense: &dyn Fn(&Numbers) -> Vec<T::Wide>,
    what: &str,
) {
    let (arguments, eps) = (arguments(op), T::Real::EPS.f64());
    let ways = ways(arguments.iter().map(Vec::len).sum());
    let found = calls(op, rows, &dense(&arguments), 400.0 * eps, threads, what);
    for ((ct, all), mut expected) in found.iter().zip(differences(&arguments, &ways, dense, &found)) {
        // where gradients vanish, rounding errors have the size of the cotangent
        let size = ct.iter().map(|x| x.abs2()).sum::<f64>().sqrt();
        expected.push(size);
        for numbers in all {
            // all arguments together: where the gradient of one vanishes, those have the size of the others
            let flat = numbers.concat();
            let along = ways.iter().map(|way| flat.iter().zip(way).map(|(a, b)| a * b).sum());
            let along: Vec<f64> = along.chain([size]).collect();
            near(&along, &expected, 2000.0 * eps + 1e-7, format!("gradients, {what}"));
        }
    }
}

/// Every call of a stack of operators and of its adjoint, on so many rows, with these numbers of threads and with what forward saves, each
/// with the same bits, also of gradients alone and together, against the matrices W: W, W x and x_bar. Returns the gradients of the
/// arguments, from those of W x and W^H x, and from those of W.
fn calls<T: Scalar>(
    op: &dyn Cpu<T>,
    rows: usize,
    w: &[T::Wide],
    tolerance: f64,
    threads: &[usize],
    what: &str,
) -> [Found<T::Wide>; 2] {
    let (arguments, (p, q), batch) = (arguments(op), op.shape(), op.batch());
    let entry = |k: usize, side: Side, i: usize, j: usize| match side {
        Side::Forward => w[(k * p + i) * q + j],
        Side::Adjoint => w[(k * p + j) * q + i].conj(),
    };
    let product = |side: Side, x: &[T]| -> Vec<T::Wide> {
        let (from, into) = side.features((p, q));
        let one = |k: usize, x: &[T], i: usize| (0..from).map(|j| entry(k, side, i, j) * x[j].widen()).sum();
        let each = x.chunks_exact(from.max(1)).enumerate();
        each.flat_map(|(row, x)| (0..into).map(move |i| one(row / rows, x, i))).collect()
    };
    let near_each = |got: &[T], expected: &[T::Wide], call: &str| {
        for k in 0..batch {
            near(part(got, k, batch), part(expected, k, batch), tolerance, format!("{call}, {what}"));
        }
    };
    // W_bar of sum Re(conj(ct) W x), or of W^H x
    let outer = |x: &[T], ct: &[T]| -> Vec<T::Wide> {
        let one = |at: usize| {
            let (k, i, j) = (at / (p * q), at / q % p, at % q);
            (k * rows..(k + 1) * rows).map(|r| ct[r * p + i].widen() * x[r * q + j].widen().conj()).sum()
        };
        (0..batch * p * q).map(one).collect()
    };
    let given = |len: usize, seed: u64| Guarded::<T>::of(&numbers::<T>(len, seed));
    let (x, ct) = (given(batch * rows * q, 4), given(batch * rows * p, 5));
    let w_bar = given(batch * p * q, 6);
    let (x, ct, w_bar) = (x.read(), ct.read(), w_bar.read());
    // the gradient of the adjoint side is that of x and ct exchanged
    let mut found = [(outer(x, ct), vec![]), (wide(w_bar), vec![])];
    for side in [Side::Forward, Side::Adjoint] {
        let (x, ct) = if side == Side::Forward { (x, ct) } else { (ct, x) };
        let saves =
            if let Saves::Elements(each) = op.apply_saves(rows, side).unwrap() { batch * each } else { 0 };
        let saved = threads.iter().filter(|_| saves > 0).map(|&threads| (threads, saves));
        let mut first = None;
        for (threads, saved) in threads.iter().map(|&threads| (threads, 0)).chain(saved) {
            let budget = Budget::of(threads);
            let (mut out, mut x_bar) = (Guarded::new(ct.len()), Guarded::new(x.len()));
            let mut kept = (saved > 0).then(|| Guarded::new(saved));
            op.apply(x, rows, side, out.inner(), kept.as_mut().map(Guarded::inner), &budget).unwrap();
            let kept = kept.as_ref().map(Guarded::read);
            let bars = pulled(op, &arguments, None, |bars| {
                op.apply_vjp(kept, x, ct, rows, side, bars, Some(x_bar.inner()), &budget).unwrap();
            });
            let got = (out.take(), x_bar.take(), bars);
            let same = *first.get_or_insert_with(|| got.clone()) == got;
            assert!(same, "{side:?}: {threads} threads, {saved} saved differ, {what}");
        }
        let (out, x_bar, bars) = first.expect("a number of threads");
        near_each(&out, &product(side, x), &format!("out, {side:?}"));
        near_each(&x_bar, &product(side.other(), ct), &format!("x_bar, {side:?}"));
        let (mut alone, budget) = (Guarded::new(x.len()), Budget::of(2));
        op.apply_vjp(None, x, ct, rows, side, &mut [], Some(alone.inner()), &budget).unwrap();
        near_each(alone.read(), &product(side.other(), ct), &format!("x_bar alone, {side:?}"));
        for i in 0..bars.len() {
            let alone = pulled(op, &arguments, Some(i), |bars| {
                op.apply_vjp(None, x, ct, rows, side, bars, None, &budget).unwrap();
            });
            assert!(alone[i] == bars[i], "gradient {i} alone differs, {side:?}, {what}");
        }
        found[0].1.push(bars);
    }
    let mut first = None;
    for &threads in threads {
        let (budget, mut out) = (Budget::of(threads), Guarded::new(w.len()));
        op.matrix(out.inner(), None, &budget).unwrap();
        let saved = match op.matrix_saves().unwrap() {
            Saves::Result => Some(Guarded::of(out.read())),
            Saves::Elements(0) => None,
            Saves::Elements(each) => {
                let (mut again, mut saved) = (Guarded::new(w.len()), Guarded::new(batch * each));
                op.matrix(again.inner(), Some(saved.inner()), &budget).unwrap();
                assert!(again.read() == out.read(), "saving changes the matrix, {what}");
                Some(saved)
            }
        };
        for saved in [None, saved.as_ref().map(Guarded::read)] {
            let bars = pulled(op, &arguments, None, |bars| {
                op.matrix_vjp(saved, w_bar, bars, &budget).unwrap();
            });
            let got = (out.read().to_vec(), bars);
            let same = *first.get_or_insert_with(|| got.clone()) == got;
            assert!(same, "matrix: {threads} threads, saved {} differ, {what}", saved.is_some());
        }
    }
    let (out, bars) = first.expect("a number of threads");
    for i in 0..bars.len() {
        let alone = pulled(op, &arguments, Some(i), |bars| {
            op.matrix_vjp(None, w_bar, bars, &Budget::of(2)).unwrap();
        });
        assert!(alone[i] == bars[i], "gradient {i} of the matrix alone differs, {what}");
    }
    near_each(&out, w, "matrix");
    found[1].1.push(bars);
    found
}
