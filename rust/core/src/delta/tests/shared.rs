//! Heads that all members share.

use super::*;
use crate::scratch::Arena;

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

#[test]
fn a_thread_adds_the_memory_that_is_documented() {
    // docs/math/delta.md: K = V = 128 in single precision, in MB
    let case = Case::<f32>::new([1, 64, 1, 1, 1, 128, 128], "head", false, 1);
    let delta = case.view();
    let forward = |arena: &mut Arena| crate::delta::task::Room::carve(arena, &delta);
    let backward = |arena: &mut Arena| crate::delta::task_pull::Room::carve(arena, &delta);
    let triangles = |arena: &mut Arena| workspace::Triangles::carve(arena, &delta);
    let of = |elements: usize| (elements * 4) as f64 / 1e6;
    assert!((0.45..0.55).contains(&of(Arena::elements::<f32, _>(forward))));
    assert!((0.85..0.95).contains(&of(Arena::elements::<f32, _>(backward))));
    for threads in [2, 3, 8, 16, 64] {
        let window = window::Window::new(&delta, 1, threads, 4);
        let added = window.chunks() * Arena::elements::<f32, _>(triangles);
        assert!(of(added) <= 0.2 * threads as f64, "{threads} threads");
        assert_eq!(window::Window::new(&delta, 1, threads, 1).chunks(), threads);
    }
}
