//! W is unitary whatever its vectors; lengths of vectors and known zeros change nothing; what is refused.

use super::*;

/// W does not depend on the lengths of the columns, gradients scale inversely: up to rounding, and for powers of two whose squares are
/// normal numbers to the last bit.
fn lengths<T: Scalar>((n, m): (usize, usize), scale: impl Fn(usize) -> f64, exact: bool) {
    let mut random = Random::new(21);
    let vectors: Vec<T> = random.array(n * m, 1.0);
    let ct: Vec<T> = random.array(n * n, 1.0);
    let scaled = vectors.iter().enumerate().map(|(at, x)| x.scale(T::Real::of(scale(at % m))));
    let [plain, divided] = [vectors.clone(), scaled.collect()].map(|vectors| {
        let (op, one) = (Householder::new(&vectors, Last::None, 1, n, m).unwrap(), Budget::of(1));
        assert_eq!(op.check(), Ok(None));
        let (mut w, mut bars) = (vec![T::zero(); n * n], vec![vec![T::zero(); n * m]; 3]);
        op.matrix(&mut w, None, &one).unwrap();
        assert!(unitarity(&w, n) <= 20.0);
        op.matrix_vjp(None, &ct, &mut [Bar::Own(&mut bars[0])], &one).unwrap();
        for (rows, bar) in [(3, 1), (n, 2)] {
            let (x, only) = (&ct[..rows * n], &mut [Bar::Own(&mut bars[bar])]);
            op.apply_vjp(None, x, x, rows, Side::Forward, only, None, &one).unwrap();
        }
        (w, bars.concat())
    });
    let tolerance = if exact { 0.0 } else { 200.0 * T::Real::EPS.f64() };
    let near = |a: T, b: T::Wide| (a.widen() - b).modulus() <= tolerance * (1.0 + a.modulus().f64());
    assert!(plain.0.iter().zip(&divided.0).all(|(a, b)| near(*a, b.widen())));
    for (at, (a, b)) in plain.1.iter().zip(&divided.1).enumerate() {
        assert!(near(*a, b.widen().scale(scale(at % m))), "{a:?} {b:?}");
    }
}

#[test]
fn lengths_of_columns_from_tiny_to_huge() {
    let power = |j: usize| 2f64.powi(((j * 37) % 799) as i32 - 399);
    for size in [(9, 5), (20, 70)].into_iter().filter(|&(n, m)| within_work(&[n, m])) {
        lengths::<f64>(size, power, true);
        lengths::<c64>(size, power, true);
    }
    // near the ends of the type's range, where 2 / ||u||^2 is not a normal number
    let ends = |small: f64, large: f64| move |j: usize| [small, large, 1.0, -large, small][j];
    lengths::<f32>((9, 5), ends(2e-18, 1e18), false);
    lengths::<c32>((9, 5), ends(2e-18, 1e18), false);
    lengths::<f64>((9, 5), ends(1e-150, 1e150), false);
    lengths::<c64>((9, 5), ends(1e-150, 1e150), false);
}

/// Skipping known zeros does not change the matrix or its gradient, also beyond one block of k.
#[test]
fn a_trapezoid_changes_no_bit_of_the_matrix() {
    fn same<T: Scalar>(n: usize, m: usize) {
        let mut random = Random::new(5);
        let mut u: Vec<T> = random.array(n * m, 1.0);
        u.iter_mut().enumerate().filter(|(at, _)| at % m > at / m).for_each(|(_, entry)| *entry = T::zero());
        let ct: Vec<T> = random.array(n * n, 1.0);
        let full = Householder::new(&u, Last::None, 1, n, m).unwrap();
        let results = [false, true].map(|trapezoid| {
            let op = Householder { trapezoid, ..full };
            let (mut w, mut bar) = (vec![T::zero(); n * n], vec![T::zero(); n * m]);
            op.matrix_whole(&mut w, None, 2).unwrap();
            let gradients = Gradients { vectors: Some(&mut bar), last: None };
            op.matrix_whole_vjp(None, &ct, gradients, 2).unwrap();
            (w, bar)
        });
        assert!(results[0] == results[1], "n {n} m {m} {}", std::any::type_name::<T>());
    }
    for (n, m) in [(5, 4), (40, 40), (70, 33), (300, 290)] {
        if !within_work(&[n, n, m]) {
            continue;
        }
        same::<f32>(n, m);
        same::<f64>(n, m);
        same::<c32>(n, m);
    }
}
