//! Every activation, number type, direction and thread count against the textbook loop; bitwise equality across threads.

mod behaviour;
mod reference;
pub mod shears;
mod starts;
mod threads;

use super::*;
use crate::activation::Activation;
use crate::activation::tests::all;
use crate::argument::{Argument, Bar};
use crate::budget::Budget;
use crate::cpu::Cpu;
use crate::operators::dense::Dense;
use crate::operators::{Last, householder::Householder};
use crate::recurrence::Run;
use crate::scalar::{Real, Scalar, c32, c64};
use crate::testing::{Guarded, fill, near, wide};
use num_traits::{One, Zero};
use reference::Problem;
use shears::Shears;

/// Matrices with so many rows each, as callers pack them.
pub fn packs<R: Real>(matrices: &[(&[R], usize)]) -> Vec<R> {
    let mut packs = vec![];
    for &(matrix, n) in matrices {
        let k = matrix.len() / n.max(1);
        let start = packs.len();
        packs.resize(start + packed::<R>(n, k), R::nan());
        pack(matrix, n, k, &mut packs[start..]).unwrap();
    }
    packs
}

/// The gradients of arguments by name, each wanted that is required or has elements.
pub fn gradients<'a, R: Real>(
    arguments: &[Argument],
    names: &[&str],
    rooms: &'a mut [Guarded<R>],
) -> Vec<Bar<'a, R>> {
    let mut bars: Vec<_> = arguments.iter().map(|_| Bar::None).collect();
    for (name, room) in names.iter().zip(rooms) {
        let at = arguments.iter().position(|argument| argument.name == *name).unwrap();
        let (argument, room) = (arguments[at], room.inner());
        if !argument.optional || !room.is_empty() {
            bars[at] = if argument.kind.real() { Bar::Real(room) } else { Bar::Own(room) };
        }
    }
    bars
}

/// The transition of a case.
#[derive(Clone, Copy, Debug)]
enum Matrix {
    Dense,
    /// So many of them.
    Reflections(usize),
    Shears,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    n: usize,
    d: usize,
    batch: usize,
    steps: usize,
    matrix: Matrix,
    activation: Activation,
    on_input: bool,
    varied: bool,
    reverse: bool,
    h0: bool,
    bias: bool,
}

/// All results of one run; equality is bitwise up to the sign of zero.
#[derive(PartialEq)]
struct Results<T: Scalar> {
    states: Vec<T>,
    transition: Vec<T>,
    sign: T::Real,
    phases: Vec<T::Real>,
    x: Vec<T>,
    v: Vec<T>,
    h0: Vec<T>,
    bias: Vec<T>,
    own: Vec<T::Real>,
}

fn check<T: Scalar>(case: Case) {
    let Case { n, d, batch, steps, activation, .. } = case;
    let (mut x, mut ct) = (fill::<T>(steps * batch * d, 1.0, 1), fill::<T>(steps * batch * n, 1.0, 2));
    let v = fill::<T>(n * d, 0.7, 3);
    let h0 = fill::<T>(if case.h0 { batch * n } else { 0 }, 1.0, 4);
    let bias = fill::<T>(if case.bias { n } else { 0 }, 0.3, 5);
    let units = activation.bias_units(n);
    // biases of both signs in half of the cases, so that complex modReLU takes both branches
    let shift = T::Real::of(if case.varied { 0.0 } else { -0.31 });
    let own: Vec<T::Real> = fill::<T::Real>(units, 0.3, 6).into_iter().map(|b| b + shift).collect();
    let lengths: Vec<usize> = (0..batch)
        .map(|b| if case.varied { (steps - (b * 2).min(steps - 1)).max(1) } else { steps })
        .collect();
    let phases = fill::<T::Real>(n, 3.0, 7);
    let (mut sign, mut angles, mut factor) = (None, None, vec![T::Wide::one(); n]);
    let (weight, m) = match case.matrix {
        Matrix::Dense => (fill::<T>(n * n, 1.2 / (n as f64 * T::PARTS as f64).sqrt(), 8), 0),
        Matrix::Reflections(m) => (fill::<T>(n * m, 1.0, 8), m),
        Matrix::Shears => (fill::<T>(2 * (n - 1), 0.4, 8), 0),
    };
    if matches!(case.matrix, Matrix::Reflections(_)) && case.h0 {
        if T::PARTS == 2 && case.bias {
            angles = Some(&phases[..]);
            factor = phases.iter().map(|a| T::Wide::cis(a.f64())).collect();
        } else {
            sign = Some(T::Real::of(-0.5));
            factor[n - 1] = T::Wide::real(-0.5);
        }
    }
    let matrix = wide(&weight);
    let mut w = matrix.clone();
    match case.matrix {
        Matrix::Dense => {}
        Matrix::Reflections(_) => {
            w = vec![T::Wide::default(); n * n];
            for k in 0..n {
                let mut e = vec![T::Wide::default(); n];
                e[k] = T::Wide::one();
                for (i, y) in reference::reflect(&matrix, m, &factor, &e).into_iter().enumerate() {
                    w[i * n + k] = y;
                }
            }
        }
        Matrix::Shears => w = shears::matrix(&matrix, n),
    }
    let or_zeros = |x: &[T], len: usize| if x.is_empty() { vec![T::Wide::default(); len] } else { wide(x) };
    let problem = Problem {
        steps,
        batch,
        d,
        n,
        w,
        x: wide(&x),
        v: wide(&v),
        h0: or_zeros(&h0, batch * n),
        bias: or_zeros(&bias, n),
        own: own.iter().map(|b| b.f64()).collect(),
        activation,
        on_input: case.on_input,
        lengths: lengths.clone(),
        reverse: case.reverse,
    };
    let (expected, bars) = (problem.forward(), problem.backward(&wide(&ct)));
    // Data past the end of a sequence must not be read.
    for (b, &length) in lengths.iter().enumerate() {
        let nan = T::real(T::Real::of(f64::NAN));
        for t in length..steps {
            x[(t * batch + b) * d..][..d].fill(nan);
            ct[(t * batch + b) * n..][..n].fill(nan);
        }
    }
    let some = |x: &'_ [T]| -> Option<Vec<T>> { (!x.is_empty()).then(|| x.to_vec()) };
    let (h0, bias) = (some(&h0), some(&bias));
    let sequence = Sequence {
        run: Run {
            h0: h0.as_deref(),
            activation,
            activation_bias: (units > 0).then_some(&own[..]),
            lengths: case.varied.then_some(&lengths[..]),
            reverse: case.reverse,
            ..Run::new([steps, batch, d, n], &x)
        },
        input_weight: &v,
        bias: bias.as_deref(),
        on_input: case.on_input,
    };
    let signs = sign.map(|s| [s]);
    let last = match (&signs, angles) {
        (Some(sign), _) => Last::Sign(sign),
        (None, Some(angles)) => Last::Phases(angles),
        (None, None) => Last::None,
    };
    let operator: Box<dyn Cpu<T> + '_> = match case.matrix {
        Matrix::Dense => Box::new(Dense::new(&weight, 1, n, n).unwrap()),
        Matrix::Reflections(_) => Box::new(Householder::new(&weight, last, 1, n, m).unwrap()),
        Matrix::Shears => Box::new(Shears::new(&weight, n)),
    };
    let run = |threads: usize, checkpoint: Option<Checkpoint>| {
        let mut states = Guarded::new(steps * batch * n);
        let budget = Budget::of(threads);
        let borders = checkpoint.map_or(0, |kind| kind.segments(steps, batch, 0).borders());
        let (mut marks, mut last) = (Guarded::new(borders * batch * n), Guarded::new(batch * n));
        let written = Written {
            states: Some(states.inner()),
            last: Some(last.inner()),
            marks: checkpoint.map(|kind| (kind, marks.inner())),
        };
        forward(&*operator, &sequence, written, &budget).unwrap();
        let (states, marks, last) = (states.take(), marks.take(), last.take());
        let kept = checkpoint.map_or(Trajectory::All(&states), |kind| Trajectory::Marks(kind, &marks, &last));
        let mut bar = Guarded::new(weight.len());
        let (mut xb, mut vb) = (Guarded::new(x.len()), Guarded::new(v.len()));
        let room = |given: bool, len: usize| Guarded::new(if given { len } else { 0 });
        let (mut hb, mut bb) = (room(case.h0, batch * n), room(case.bias, n));
        let mut ob = Guarded::<T::Real>::new(units);
        let (mut sb, mut pb) =
            ([T::Real::zero()], Guarded::<T::Real>::new(if angles.is_some() { n } else { 0 }));
        let mut bars = [
            Bar::Own(xb.inner()),
            Bar::Own(vb.inner()),
            if case.h0 { Bar::Own(hb.inner()) } else { Bar::None },
            if case.bias { Bar::Own(bb.inner()) } else { Bar::None },
            if units > 0 { Bar::Real(ob.inner()) } else { Bar::None },
        ];
        let vectors = Bar::Own(bar.inner());
        let own = &mut match (sign, angles) {
            (Some(_), _) => vec![vectors, Bar::Real(&mut sb)],
            (None, Some(_)) => vec![vectors, Bar::None, Bar::Real(pb.inner())],
            (None, None) => vec![vectors],
        };
        backward(&*operator, own, &sequence, kept, &ct, &mut bars, &budget).unwrap();
        Results {
            states,
            transition: bar.take(),
            sign: sb[0],
            phases: pb.take(),
            x: xb.take(),
            v: vb.take(),
            h0: hb.take(),
            bias: bb.take(),
            own: ob.take(),
        }
    };
    let results = run(1, None);
    for threads in [2, 3] {
        assert!(run(threads, None) == results, "{threads} threads change the result: {case:?}");
    }
    for threads in [1, 2] {
        let kept = run(threads, Some(Checkpoint::Sqrt));
        assert!(kept == results, "a checkpoint changes the result of {threads} threads: {case:?}");
    }
    let single = size_of::<T::Real>() == 4;
    let undoable = case.on_input
        || matches!(activation, Activation::Identity | Activation::Oplu | Activation::OpluHalves);
    if undoable && sign.is_none() && matches!(case.matrix, Matrix::Reflections(_)) {
        let (undone, tolerance) = (run(2, Some(Checkpoint::Reversible)), if single { 1e-3 } else { 1e-11 });
        assert!(undone.states == results.states, "{case:?}");
        for (name, a, b) in [
            ("vectors", &undone.transition, &results.transition),
            ("x", &undone.x, &results.x),
            ("input weight", &undone.v, &results.v),
            ("h0", &undone.h0, &results.h0),
        ] {
            near(a, &wide(b), tolerance, format_args!("{name} of undone steps, {case:?}"));
        }
    }
    let tolerance = |single_one: f64, double: f64| if single { single_one } else { double };
    near(&results.states, &expected, tolerance(2e-5, 1e-12), format_args!("states, {case:?}"));
    let tolerance = tolerance(1e-3, 1e-11);
    match case.matrix {
        Matrix::Dense => near(&results.transition, &bars.w, tolerance, format_args!("weight, {case:?}")),
        Matrix::Shears => {
            near(
                &results.transition,
                &shears::pull(&matrix, n, &bars.w),
                tolerance,
                format_args!("shears, {case:?}"),
            );
        }
        Matrix::Reflections(m) => {
            let (u_bar, s_bar, p_bar) = reference::reflect_back(&matrix, m, &factor, &bars.w);
            near(&results.transition, &u_bar, tolerance, format_args!("vectors, {case:?}"));
            if sign.is_some() {
                near(&[results.sign], &[s_bar], tolerance, format_args!("sign, {case:?}"));
            }
            if angles.is_some() {
                near(&results.phases, &p_bar, tolerance, format_args!("phases, {case:?}"));
            }
        }
    }
    near(&results.x, &bars.x, tolerance, format_args!("x, {case:?}"));
    near(&results.v, &bars.v, tolerance, format_args!("input weight, {case:?}"));
    if case.h0 {
        near(&results.h0, &bars.h0, tolerance, format_args!("h0, {case:?}"));
    }
    if case.bias {
        near(&results.bias, &bars.bias, tolerance, format_args!("bias, {case:?}"));
    }
    near(&results.own, &bars.own, tolerance, format_args!("activation bias, {case:?}"));
}

/// All activations in all four variants of direction and lengths.
fn sweep<T: Scalar>(n: usize, d: usize, batch: usize, steps: usize, matrix: Matrix) {
    if !crate::testing::within_work(&[steps, batch, n, n]) {
        return;
    }
    for (i, activation) in all::<T>().into_iter().enumerate() {
        for variant in 0..8 {
            let (on_input, varied, reverse) = (variant & 1 == 1, variant & 2 == 2, variant & 4 == 4);
            let (h0, bias) = ((variant + i) % 3 != 0, (variant + i) % 2 == 0);
            check::<T>(Case { n, d, batch, steps, matrix, activation, on_input, varied, reverse, h0, bias });
        }
    }
}

macro_rules! sweeps {
    ($($name:ident: $t:ty;)*) => { $(
        #[test]
        fn $name() {
            for (n, d, batch, steps) in [(2, 1, 1, 1), (6, 3, 5, 9), (38, 2, 1, 20), (36, 1, 3, 12), (70, 9, 2, 11), (34, 2, 13, 5)] {
                sweep::<$t>(n, d, batch, steps, Matrix::Dense);
            }
            for (n, m, batch, steps) in [(2, 0, 1, 2), (6, 3, 5, 9), (38, 35, 1, 20), (40, 7, 3, 12), (66, 40, 2, 6), (10, 17, 13, 5)] {
                sweep::<$t>(n, 2, batch, steps, Matrix::Reflections(m));
            }
            for (n, d, batch, steps) in [(6, 3, 5, 9), (38, 2, 1, 20), (36, 1, 3, 12), (34, 2, 40, 3)] {
                sweep::<$t>(n, d, batch, steps, Matrix::Shears);
            }
        }
    )* };
}
sweeps! {
    follows_the_textbook_f32: f32;
    follows_the_textbook_f64: f64;
    follows_the_textbook_c32: c32;
    follows_the_textbook_c64: c64;
}
