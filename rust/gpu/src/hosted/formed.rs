//! The matrices of transitions that the latest calls have formed: the gradient of a recurrence is a call of its own, on
//! the same arguments of the operator, and so is the next one where nothing is trained.

use crate::device::{Context, Memory};
use crate::{Array, Field};
use isometry_core::argument::{self, Given};
use isometry_core::internal::sizes::work;
use isometry_core::scalar::Scalar;
use std::sync::{Arc, Weak};

/// The latest, most recent first, which the device keeps.
type Latest = Vec<Arc<(Key, Array)>>;
/// Most matrices that are kept, and most numbers of theirs and of their arguments.
const MOST: usize = 16;
pub(super) const NUMBERS: usize = if cfg!(test) { 1 << 14 } else { 1 << 24 };

/// An object and its arguments, as they were uploaded.
pub(super) struct Key {
    object: String,
    arguments: Vec<Option<Argument>>,
}

/// An argument by its numbers, or by the memory of the device, whose numbers do not change.
enum Argument {
    Host(Vec<usize>, Field, Arc<Vec<f32>>),
    Resident(Vec<usize>, Weak<Memory>),
}

impl Key {
    /// Without arguments; None for what is not kept: a matrix itself, and what has too many numbers.
    pub fn new<T: Scalar>(object: &str, given: &[Given<'_, T>]) -> Option<Self> {
        let hosted = given.iter().filter(|given| !matches!(given.array, argument::Array::Remote(_)));
        let numbers: usize = hosted.map(|given| work(given.shape).saturating_mul(T::PARTS)).sum();
        let kept = object != "dense" && numbers <= NUMBERS;
        kept.then(|| Key { object: object.to_string(), arguments: vec![] })
    }

    /// The next argument, and its copy if its numbers are the caller's.
    pub fn push(&mut self, sent: Option<&(Array, Option<Arc<Vec<f32>>>)>) {
        self.arguments.push(sent.map(|(array, copy)| {
            let shape = array.shape().to_vec();
            match copy {
                Some(copy) => Argument::Host(shape, array.field(), copy.clone()),
                None => Argument::Resident(shape, Arc::downgrade(array.memory())),
            }
        }));
    }

    /// Whether they are the same, to the bit.
    fn is(&self, other: &Key) -> bool {
        let same = |pair: (&Option<Argument>, &Option<Argument>)| match pair {
            (None, None) => true,
            (Some(Argument::Host(shape, field, x)), Some(Argument::Host(other, of, y))) => {
                (shape, field) == (other, of)
                    && x.iter().map(|x| x.to_bits()).eq(y.iter().map(|y| y.to_bits()))
            }
            (Some(Argument::Resident(shape, x)), Some(Argument::Resident(other, y))) => {
                shape == other && x.ptr_eq(y)
            }
            _ => false,
        };
        let lens = self.arguments.len() == other.arguments.len();
        lens && self.object == other.object && self.arguments.iter().zip(&other.arguments).all(same)
    }

    /// Whether memory of an argument is gone: then W is nobody's.
    fn is_gone(&self) -> bool {
        let gone = |argument: &Argument| matches!(argument, Argument::Resident(_, memory) if memory.strong_count() == 0);
        self.arguments.iter().flatten().any(gone)
    }

    /// Numbers of the copies.
    fn numbers(&self) -> usize {
        let each = |argument: &Argument| if let Argument::Host(.., x) = argument { x.len() } else { 0 };
        self.arguments.iter().flatten().map(each).sum()
    }
}

/// W of these arguments, if one of the latest calls has formed it on this device.
pub(super) fn find(context: &Context, key: &Key) -> Option<Array> {
    let latest: Latest = context.kept.get(None)?;
    latest.iter().find(|formed| formed.0.is(key)).map(|formed| formed.1.clone())
}

/// Keeps W of these arguments, which must have been submitted.
pub(super) fn keep(key: Key, w: Array) {
    let context = w.context().clone();
    let mut latest: Latest = context.kept.get(None).unwrap_or_default();
    latest.retain(|formed| !formed.0.is_gone() && !formed.0.is(&key));
    latest.insert(0, Arc::new((key, w)));
    let mut left = NUMBERS;
    let within = latest.iter().take(MOST).take_while(|formed| {
        let numbers = formed.0.numbers() + formed.1.len() * formed.1.field().parts();
        let fits = numbers <= left;
        left = left.saturating_sub(numbers);
        fits
    });
    let count = within.count();
    latest.truncate(count);
    context.kept.put(None, latest);
}
