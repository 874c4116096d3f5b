//! The second biases of a GRU.

use crate::argument::wanted;
use crate::budget::Budget;
use crate::recurrence::gru::{ARGUMENTS, Gru, Reset};
use crate::recurrence::{Outcome, Run, Unit};

const SIZES: [usize; 4] = [3, 2, 2, 3];

fn numbers(count: usize, seed: usize) -> Vec<f64> {
    (0..count).map(|i| ((i * 7 + seed * 5) % 11) as f64 * 0.1 - 0.5).collect()
}

/// The states, and the gradients of b (where it is wanted) and of the second biases.
fn found(b: Option<&[f64]>, second: &[f64], with_b: bool) -> [Vec<f64>; 3] {
    let [steps, batch, features, n] = SIZES;
    let (x, w, u) = (numbers(12, 1), numbers(3 * n * n, 2), numbers(3 * n * features, 3));
    let run = Run::new(SIZES, &x);
    let gru = Gru {
        run,
        w: &w,
        transition: None,
        u: &u,
        b,
        reset: Reset::After,
        hidden_bias: Some(second),
        r_first: false,
    };
    let count = steps * batch * n;
    let (mut states, mut saved, budget) = (vec![0.0; count], vec![0.0; 4 * count], Budget::of(1));
    gru.forward((&mut states).into(), &mut [], Some(&mut saved), &budget).unwrap();
    let (mut b_bar, mut second_bar) = (vec![f64::NAN; 3 * n], vec![f64::NAN; second.len()]);
    let ct = numbers(count, 4);
    let mut named = wanted(ARGUMENTS, [("b", &mut b_bar[..]), ("hidden_bias", &mut second_bar[..])]);
    if !with_b {
        named[3] = crate::argument::Bar::None;
    }
    let outcome =
        Outcome { states: (&states).into(), last: &[], saved: &saved, ct: (&ct).into(), last_ct: None };
    gru.backward(&outcome, &mut named, &mut [], &budget).unwrap();
    drop(named);
    [states, b_bar, second_bar]
}

#[test]
fn those_of_the_gates_add_to_the_first() {
    let n = SIZES[3];
    let (b, second) = (numbers(3 * n, 5), numbers(3 * n, 6));
    for b in [Some(&b[..]), None] {
        let mut sum = b.map_or(vec![0.0; 3 * n], <[f64]>::to_vec);
        sum[..2 * n].iter_mut().zip(&second).for_each(|(b, second)| *b += second);
        let [states, b_bar, own_bar] = found(Some(&sum), &second[2 * n..], true);
        for with_b in [b.is_some(), false] {
            let [same, first_bar, second_bar] = found(b, &second, with_b);
            assert_eq!(same, states);
            assert!(if with_b { first_bar == b_bar } else { first_bar.iter().all(|g| g.is_nan()) });
            assert_eq!(second_bar, [&b_bar[..2 * n], &own_bar].concat());
        }
    }
}
