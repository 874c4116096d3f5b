//! The delta rule.

use crate::{LENGTHS, THREADS, choices, expect, ones, returns};
use isometry_core::Budget;
use isometry_core::delta::{Delta, DeltaGradients, Gate, advance, backward, forward};
use isometry_core::internal::delta::Sizes;
use isometry_core::scalar::Real;

/// One head of a token each, or other numbers of heads beside one token.
pub fn deltas<R: Real>() {
    for sizes @ [a, b, c, d] in choices() {
        for len in LENGTHS {
            let one = [1; 3];
            call::<R>([a, b, c, d], one, len, &sizes);
            call::<R>([a, 1, 1, 1], [b, c, d], len, &sizes);
        }
    }
}

fn call<R: Real>(
    [batch, tokens, key, value]: [usize; 4],
    [householders, heads, value_heads]: [usize; 3],
    len: usize,
    sizes: &[usize],
) {
    let x = ones::<R>(len);
    for gate in [Gate::None, Gate::Head(&x[..]), Gate::Row(&x[..])] {
        for (initial, ends) in [(None, None), (Some(&x[..]), None), (None, Some(&[0, 1][..]))] {
            let delta = Delta {
                batch,
                tokens,
                householders,
                heads,
                value_heads,
                key,
                value,
                q: &x,
                k: &x,
                v: &x,
                beta: &x,
                gate,
                initial,
                ends,
                scale: 1.0,
                normalise: false,
            };
            let own = Sizes { batch, tokens, householders, heads, value_heads, key, value, ends };
            returns("Sizes::sequences", sizes, || Ok(own.sequences()));
            for wide in [false, true] {
                returns("Sizes::check", sizes, || own.check([len; 4], Some((len, wide)), Some(len)));
            }
            returns("Delta::saved", sizes, || Ok(delta.saved()));
            returns("Delta::sequences", sizes, || Ok(delta.sequences()));
            let budget = Budget::of(THREADS);
            for saved in [0, 1] {
                let (mut o, mut state, mut saved) = (ones(len), ones(len), ones(saved));
                returns("delta::forward", sizes, || {
                    forward(&delta, &mut o, &mut state, Some(&mut saved), &budget)
                });
                returns("delta::advance", sizes, || advance(&delta, &mut o, &mut state, &budget));
                let [mut q, mut k, mut v, mut beta] = [(); 4].map(|()| ones::<R>(len));
                returns("delta::backward", sizes, || {
                    let bars = DeltaGradients {
                        q: Some(&mut q),
                        k: Some(&mut k),
                        v: Some(&mut v),
                        beta: Some(&mut beta),
                        g: None,
                        initial: None,
                    };
                    backward(&delta, &saved, (&o, &state), bars, &budget)
                });
                // empty gradients of arguments that are not given
                for (g, start) in [(matches!(gate, Gate::None), false), (false, initial.is_none())] {
                    if g || start {
                        let (g, initial) = (g.then_some(&mut [][..]), start.then_some(&mut [][..]));
                        let bars = DeltaGradients { q: None, k: None, v: None, beta: None, g, initial };
                        expect("delta::backward", sizes, false, || {
                            backward(&delta, &saved, (&o, &state), bars, &budget)
                        });
                    }
                }
            }
        }
    }
}
