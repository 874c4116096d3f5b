//! Memory: copies in parts, what is kept free, and a device that is closed.

use super::context;
use crate::testing::{device, own};
use crate::{Array, Field};
use isometry_core::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

#[test]
fn uploads_in_parts_are_whole() {
    let Some(context) = device() else { return };
    let len = (65 << 20) / 4 + 3;
    let numbers: Vec<f32> = (0..len).map(|i| (i % 1021) as f32).collect();
    let array = Array::upload(&context, Field::Real, &[len], &numbers).unwrap();
    assert!(array.download().unwrap() == numbers);
}

#[test]
fn several_arrays_come_with_one_wait() {
    let Some(context) = device() else { return };
    let a = Array::upload(&context, Field::Real, &[3], &[1.0, 2.0, 3.0]).unwrap();
    let none = Array::room(&context, Field::Real, &[0, 7]).unwrap();
    let b = Array::upload(&context, Field::Complex, &[1, 2], &[4.0, 5.0, 6.0, 7.0]).unwrap();
    let (mut x, mut y, mut z) = ([0.0; 3], [0.0; 0], [0.0; 4]);
    Array::download_all(&mut [(&a, &mut x), (&none, &mut y), (&b, &mut z)], &|| false).unwrap();
    assert_eq!((x, z), ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]));
    assert!(Array::download_all(&mut [(&a, &mut z)], &|| false).is_err());
}

/// Around the size of a part, which tests have small, and several parts of one array.
#[test]
fn downloads_in_parts_are_whole() {
    let Some(context) = device() else { return };
    let part = (1 << 16) / 4;
    let numbers = |len: usize, seed: usize| (0..len).map(|i| ((i + seed) % 1021) as f32).collect::<Vec<_>>();
    for lens in
        [vec![part - 1, 2], vec![part], vec![part + 1], vec![3, 0, 3 * part, part, 5], vec![1, 7 * part]]
    {
        let sent: Vec<_> = lens.iter().enumerate().map(|(seed, &len)| numbers(len, seed)).collect();
        let upload = |x: &Vec<f32>| Array::upload(&context, Field::Real, &[x.len()], x).unwrap();
        let arrays: Vec<_> = sent.iter().map(upload).collect();
        let mut found: Vec<_> = lens.iter().map(|&len| vec![-1.0; len]).collect();
        let mut to: Vec<_> = arrays.iter().zip(found.iter_mut().map(|x| &mut **x)).collect();
        Array::download_all(&mut to, &|| false).unwrap();
        assert!(found == sent, "{lens:?}");
    }
}

#[test]
fn a_cancelled_record_stops_at_its_next_part() {
    let Some(context) = own() else { return };
    let array = Array::upload(&context, Field::Real, &[4, 4], &[1.0; 16]).unwrap();
    let shader = &crate::householder::HERMITIAN;
    let variant = crate::shader::Variant { shader, field: Field::Real, constants: &[] };
    let stop = AtomicBool::new(false);
    let cancel = || stop.load(Relaxed);
    let mut record = super::Record::until(&context, &cancel).unwrap();
    for k in 0..1000 {
        stop.store(k >= 500, Relaxed);
        let done = record.dispatch(variant, &[("l", &array)], &[16, 4], [1, 1, 1]);
        if k >= 500 && done == Err(Error::Interrupted) {
            break;
        }
        assert!(done.is_ok() && k < 600, "{k}: {done:?}");
    }
    drop(record);
    assert_eq!(array.download().unwrap(), [1.0; 16]);
}

#[test]
fn free_memory_is_bounded() {
    let Some(context) = own() else { return };
    let arrays: Vec<_> = (0..40).map(|_| Array::room(&context, Field::Real, &[1000]).unwrap()).collect();
    drop(arrays);
    assert_eq!(context.pool.bytes(), 16 * 4096);
    let again = Array::room(&context, Field::Real, &[900]).unwrap();
    assert_eq!(context.pool.bytes(), 15 * 4096);
    drop(again);
    context.pool.clear();
    assert_eq!(context.pool.bytes(), 0);
}

#[test]
fn what_is_kept_ends_with_its_memory_or_for_want_of_memory() {
    let Some(context) = own() else { return };
    let room = || Array::room(&context, Field::Real, &[1000]).unwrap();
    let owner = room();
    let kept = || {
        let [one, other] = [room(), room()];
        let held = [&one, &other].map(|array| Arc::downgrade(array.memory()));
        owner.memory().keep(one);
        context.kept.put(None, other);
        move || held.each_ref().map(|memory| memory.strong_count())
    };
    let found = kept();
    assert_eq!(found(), [1, 1]);
    drop(room());
    assert!(context.pool.bytes() > 0 && owner.memory().kept::<Array>().is_some());
    assert_eq!(context.retried(|| Err::<(), _>(Error::Interrupted)), Err(Error::Interrupted));
    assert_eq!((found(), context.pool.bytes()), ([0, 0], 0));
    let found = kept();
    drop(owner);
    assert_eq!(found(), [0, 1]);
    context.close();
    assert_eq!(found(), [0, 0]);
}

#[test]
fn a_closed_device_is_an_error_and_another_goes_on() {
    let Some(context) = own() else { return };
    let array = Array::upload(&context, Field::Real, &[2], &[1.0, 2.0]).unwrap();
    context.close();
    let lost = |result: Result<(), Error>| match result {
        Err(Error::Device(text)) => assert!(text.contains("was lost (it was reset)"), "{text}"),
        other => panic!("{other:?}"),
    };
    lost(array.download().map(drop));
    lost(Array::room(&context, Field::Real, &[2]).map(drop));
    lost(context.wait(&|| false));
    drop(array);
    assert_eq!(context.pool.bytes(), 0);
    let other = super::context().unwrap();
    assert_eq!(Array::upload(&other, Field::Real, &[1], &[3.0]).unwrap().download().unwrap(), [3.0]);
}

#[test]
fn devices_do_not_mix() {
    let (Some(one), Ok(other)) = (own(), context()) else { return };
    let [a, b] = [&one, &other].map(|context| Array::upload(context, Field::Real, &[1], &[1.0]).unwrap());
    let (mut x, mut y) = ([0.0], [0.0]);
    assert!(Array::download_all(&mut [(&a, &mut x), (&b, &mut y)], &|| false).is_err());
    let mut record = super::Record::new(&one).unwrap();
    assert!(record.copy(&a, &b).is_err());
}

/// What a call does wrong is its own error, and the device goes on.
#[test]
fn a_wrong_call_does_not_lose_the_device() {
    let Some(context) = own() else { return };
    let array = Array::upload(&context, Field::Real, &[4, 4], &[1.0; 16]).unwrap();
    let mut record = super::Record::new(&context).unwrap();
    let shader = &crate::householder::HERMITIAN;
    let variant = crate::shader::Variant { shader, field: Field::Real, constants: &[] };
    record.dispatch(variant, &[("l", &array)], &[16, 4], [1, 1, 1]).unwrap();
    assert!(record.dispatch(variant, &[("l", &array)], &[16, 4], [1 << 20, 1, 1]).is_err());
    drop(record);
    assert_eq!(context.lost(), None);
    assert_eq!(array.download().unwrap(), [1.0; 16]);
}
