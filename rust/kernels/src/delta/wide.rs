//! The products of keys and queries in a chunk where every row of the state has a gate of its own: the decays stand inside
//! the sums over the columns,
//!
//! ```text
//! G_ji = sum_d k_jd k_id D_jid,    P_jt = sum_d k_jd q_td D_jr(t)d,    D_jid = a_{j+1},d ... a_id
//! ```

use super::{Matrix, total};
use crate::dispatch::kernel;

/// G for j <= i and P for j <= r(t), zeros elsewhere. Query t stands at row r(t) = first + t every.
///
/// # Safety
/// k and a have `rows` rows of n numbers, q `queries`; g has `rows` rows and columns, p `rows` rows and `queries` columns;
/// `own` has n numbers.
pub struct WideGram<R> {
    /// The keys.
    pub k: Matrix<R>,
    /// The queries.
    pub q: Matrix<R>,
    /// The gates.
    pub a: Matrix<R>,
    /// G
    pub g: Matrix<R>,
    /// P
    pub p: Matrix<R>,
    /// Room for a row.
    pub own: *mut R,
    /// Rows.
    pub rows: usize,
    /// Queries.
    pub queries: usize,
    /// The row of the first query.
    pub first: usize,
    /// Rows from one query to the next.
    pub every: usize,
    /// Columns.
    pub n: usize,
}

kernel!(WideGram::<R>, |&WideGram { k, q, a, g, p, own, rows, queries, first, every, n }| {
    for j in 0..rows {
        // SAFETY: the matrices have these rows.
        unsafe {
            for i in 0..j {
                *g.row(j).add(i) = R::zero();
            }
            for t in 0..queries {
                *p.row(j).add(t) = R::zero();
            }
            let mut t = (0..queries).find(|t| first + t * every >= j).unwrap_or(queries);
            for i in j..rows {
                let asked = t < queries && first + t * every == i;
                let (mut with_key, mut with_query) = (S::zero(), S::zero());
                for col in (0..n).step_by(S::LANES) {
                    let live = n - col;
                    let mut x = S::load_n(if i == j { k.row(j) } else { own }.add(col), live);
                    if i > j {
                        x = S::mul(x, S::load_n(a.row(i).add(col), live));
                    }
                    S::store_n(own.add(col), x, live);
                    with_key = S::mul_add(x, S::load_n(k.row(i).add(col), live), with_key);
                    if asked {
                        with_query = S::mul_add(x, S::load_n(q.row(t).add(col), live), with_query);
                    }
                }
                *g.row(j).add(i) = total::<S>(with_key);
                if asked {
                    *p.row(j).add(t) = total::<S>(with_query);
                    t += 1;
                }
            }
        }
    }
});

/// Back through [`WideGram`]: from the gradients of G (for j < i) and P to those of keys and queries, and of the sums c of
/// the logarithms of the gates, D_jid = e^(c_id - c_jd), all added.
///
/// # Safety
/// As for [`WideGram`]; the gradients have the sizes of their arrays, `c_bar` those of a.
pub struct WidePull<R> {
    /// The arguments; g and p hold the gradients.
    pub gram: WideGram<R>,
    /// The gradient of the keys.
    pub k_bar: Matrix<R>,
    /// The gradient of the queries.
    pub q_bar: Matrix<R>,
    /// The gradient of c.
    pub c_bar: Matrix<R>,
    /// Room for a row.
    pub decay: *mut R,
}

kernel!(WidePull::<R>, |&WidePull { ref gram, k_bar, q_bar, c_bar, decay }| {
    let WideGram { k, q, a, g, p, own: _, rows, queries, first, every, n } = *gram;
    for j in 0..rows {
        // SAFETY: the matrices have these rows.
        unsafe {
            let mut t = (0..queries).find(|t| first + t * every >= j).unwrap_or(queries);
            for i in j..rows {
                let asked = t < queries && first + t * every == i;
                let with_key = S::splat(if i > j { *g.row(j).add(i) } else { R::zero() });
                let with_query = S::splat(if asked { *p.row(j).add(t) } else { R::zero() });
                for col in (0..n).step_by(S::LANES) {
                    let live = n - col;
                    let mut d = S::splat(R::one());
                    if i > j {
                        let so_far = if i == j + 1 { d } else { S::load_n(decay.add(col), live) };
                        d = S::mul(so_far, S::load_n(a.row(i).add(col), live));
                        S::store_n(decay.add(col), d, live);
                    }
                    let own = S::load_n(k.row(j).add(col), live);
                    let x = S::mul(own, d);
                    // the gradient of x
                    let mut x_bar = S::mul(with_key, S::load_n(k.row(i).add(col), live));
                    let to = k_bar.row(i).add(col);
                    S::store_n(to, S::mul_add(with_key, x, S::load_n(to, live)), live);
                    if asked {
                        x_bar = S::mul_add(with_query, S::load_n(q.row(t).add(col), live), x_bar);
                        let to = q_bar.row(t).add(col);
                        S::store_n(to, S::mul_add(with_query, x, S::load_n(to, live)), live);
                    }
                    let to = k_bar.row(j).add(col);
                    S::store_n(to, S::mul_add(x_bar, d, S::load_n(to, live)), live);
                    let to = c_bar.row(i).add(col);
                    S::store_n(to, S::mul_add(x_bar, x, S::load_n(to, live)), live);
                    let to = c_bar.row(j).add(col);
                    S::store_n(to, S::neg_mul_add(x_bar, x, S::load_n(to, live)), live);
                }
                t += usize::from(asked);
            }
        }
    }
});
