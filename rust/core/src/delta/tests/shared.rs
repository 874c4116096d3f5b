//! Heads that all members share.

use super::*;

#[test]
fn heads_that_members_share_have_the_bits_of_one_member() {
    // fewer heads than members: windows of chunks, columns of V, value heads that read one key head, packed and short sequences
    for (sizes, gate, ends) in [
        ([1, 200, 1, 1, 1, 8, 70], "head", None),
        ([1, 150, 1, 1, 2, 8, 33], "none", None),
        ([1, 100, 2, 1, 1, 8, 40], "row", None),
        ([1, 70, 3, 2, 2, 6, 5], "head", None),
        ([1, 300, 1, 1, 3, 8, 20], "head", Some(vec![0, 130, 130, 135, 300])),
        ([1, 1030, 1, 1, 1, 4, 40], "row", None),
    ] {
        let mut case = Case::<f32>::new(sizes, gate, true, 7);
        if let Some(ends) = ends {
            let size = sizes[4] * sizes[5] * sizes[6] * (ends.len() - 1);
            case.initial = Some(Random::new(8).array(size, 1.0));
            case.state_bar = Random::new(9).array(size, 1.0);
            case.ends = Some(ends);
        }
        case.normalise = sizes[1] == 200;
        let own = case.found(1);
        // a call that finds the team busy runs alone, and proves nothing
        for threads in [2, 3, 8, 16, 64].repeat(3) {
            assert!(own == case.found(threads), "{sizes:?}, {threads} threads");
        }
    }
}

#[test]
fn numbers_that_are_not_finite_reach_the_same_entries_whoever_computes_them() {
    for (at, gate) in [(70, "head"), (3, "none"), (139, "row")] {
        let mut case = Case::<f32>::new([1, 200, 1, 1, 1, 4, 40], gate, true, 7);
        case.v[at * 40 + 35] = f32::INFINITY;
        let results = |threads| {
            let (mut o, mut state) = (vec![0.0; case.o_bar.len()], vec![0.0; case.state_bar.len()]);
            forward(&case.view(), &mut o, &mut state, None, &Budget::of(threads)).unwrap();
            // NaN is equal to NaN here
            assert!(o[..at * 40].iter().all(|x| x.is_finite()) && o.iter().any(|x| !x.is_finite()));
            format!("{o:?} {state:?}")
        };
        let own = results(1);
        assert!([2, 3, 8].repeat(3).into_iter().all(|threads| results(threads) == own), "row {at}, {gate}");
    }
}
