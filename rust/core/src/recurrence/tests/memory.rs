//! The memory of a rotational unit.

use super::textbook::CELLS;
use super::{Case, Problem, plain};
use crate::activation::Activation;
use crate::scalar::Real;
use crate::testing::{drawn::Held, within_work};

fn case(sizes: [usize; 4]) -> Case {
    let cell = CELLS.iter().find(|cell| cell.name == "rum").unwrap();
    Case { sizes, settings: &[1.0, 1.0], activation: Activation::Relu, ..plain(cell) }
}

/// Sets an array of a problem.
fn set<R: Real>(problem: &mut Problem<R>, name: &str, number: impl Fn(usize) -> f64) {
    let at = problem.at(name);
    if let Held::Own(array) = &mut problem.arrays[at].1 {
        array.iter_mut().enumerate().for_each(|(i, x)| *x = R::of(number(i)));
    }
}

fn identity(n: usize) -> impl Fn(usize) -> f64 {
    move |at| f64::from(u8::from((at % (n * n)).is_multiple_of(n + 1)))
}

/// The largest element of R_0 - I that is left after T rotations there and back.
fn drift<R: Real>(n: usize, steps: usize) -> f64 {
    let mut problem = Problem::<R>::new(case([steps, 1, 1, n]));
    // tau without h: then no rounding error comes back through the states
    set(&mut problem, "w", |_| 0.0);
    set(&mut problem, "r0", identity(n));
    // without cotangents of the states that of the memory is turned back as the memory is: R_T arrives at R_0
    problem.ct.fill(R::zero());
    let memory = problem.run(1, None).unwrap().swap_remove(2).1;
    problem.memory_ct = memory.into_iter().map(R::of).collect();
    let (_, bar) = problem.run(1, None).unwrap().into_iter().find(|(name, _)| name == "r0").unwrap();
    bar.iter().enumerate().map(|(at, x)| (x - identity(n)(at)).abs()).fold(0.0, f64::max)
}

#[test]
fn a_memory_is_undone_to_rounding() {
    let sizes = [(4, 15), (16, 100), (16, 4000), (64, 1000)];
    for (n, steps) in sizes.into_iter().filter(|&(n, steps)| within_work(&[steps, n, n])) {
        for (drift, eps) in
            [(drift::<f32>(n, steps), f64::from(f32::EPSILON)), (drift::<f64>(n, steps), f64::EPSILON)]
        {
            let bound = steps as f64 * eps;
            assert!(drift > 0.0 && drift < bound, "n {n}, T {steps}: {drift:e}, below {bound:e} expected");
        }
    }
}
