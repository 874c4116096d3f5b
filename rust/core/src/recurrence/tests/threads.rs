//! Every kind of step on any number of threads.

use super::{Case, Matrix, Problem, variants};
use crate::scalar::{Scalar, c32};
use crate::testing::threads::same_bits;

fn steps<T: Scalar>() {
    for batch in [1, 5, 70] {
        for case in variants(T::PARTS == 2, 34) {
            // of one row only the columns of a matrix are shared
            if batch > 1 || case.matrix == Matrix::Dense {
                let problem = Problem::<T>::new(Case { sizes: [4, batch, 3, 34], ..case });
                same_bits(&problem.case.to_string(), |threads| problem.run(threads, None).unwrap());
            }
        }
    }
}

#[test]
fn any_number_of_threads_has_the_same_bits() {
    steps::<f32>();
    steps::<c32>();
}
