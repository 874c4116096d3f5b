//! Cells by their names on the caller's arrays, all members of an ensemble in one call.

use super::cell::{self, refused};
use super::recurrence::{self, Member};
use isometry_core::argument::Bar;
use isometry_core::recurrence::gru::Gru;
use isometry_core::recurrence::lstm::Lstm;
use isometry_core::recurrence::rum::Rum;
use isometry_core::recurrence::{Call, Cotangent, Outcome, Sequence, Trajectory, Unit, Written};
use isometry_core::scalar::{Scalar, parts, parts_mut};
use isometry_core::{Budget, Error, Result};

/// Bytes of the states of members that are submitted together; a member itself may have more.
const TOGETHER: usize = 1 << 28;

/// The arrays that forward fills: the states and the memory, empty without one.
pub(super) struct Filled<'a, T> {
    pub states: &'a mut [T],
    pub last: &'a mut [T],
}

/// What a backward pass of a cell reads and fills.
pub(super) struct Pull<'a, T: Scalar> {
    pub states: &'a [T],
    pub ct: &'a [T],
    pub last_ct: Option<&'a [T]>,
    pub bars: Vec<Bar<'a, T>>,
}

/// A call and what it fills: its states, and its memory, empty without one.
pub type Forward<'a, T> = (Call<'a, T>, Written<'a, T>, &'a mut [T]);

/// A call, its results, and the rooms for the gradients of its arguments and of those of its operator.
pub type Backward<'a, T> = (Call<'a, T>, Outcome<'a, T>, Vec<Bar<'a, T>>, Vec<Bar<'a, T>>);

/// The states of members of the same sizes.
pub fn forward<T: Scalar>(members: Vec<Forward<'_, T>>, budget: &Budget<'_>) -> Result<()> {
    let Some((first, ..)) = members.first() else { return Ok(()) };
    let (name, bytes) = (first.cell.name, bytes(first)?);
    macro_rules! of_cell {
        ($members:ident, $unit:ident) => {{
            let mut units = Vec::with_capacity($members.len());
            for (call, to, last) in $members {
                let filled = Filled { states: parts_mut(states(to)?), last: parts_mut(last) };
                units.push(($unit::of(&alone(call)?, None)?, filled));
            }
            cell::forward(units, budget)
        }};
    }
    together(members, bytes, |members| match name {
        "recurrence" => {
            let (calls, rooms): (Vec<_>, Vec<_>) =
                members.into_iter().map(|(call, to, _)| (call, to)).unzip();
            let mut units = Vec::with_capacity(calls.len());
            for (call, to) in calls.iter().zip(rooms) {
                units.push(member(call, states(to)?)?);
            }
            recurrence::forward(units, budget)
        }
        "gru" | "goru" => of_cell!(members, Gru),
        "lstm" => of_cell!(members, Lstm),
        "rum" => of_cell!(members, Rum),
        _ => refused(name),
    })
}

/// Their gradients.
pub fn backward<T: Scalar>(members: Vec<Backward<'_, T>>, budget: &Budget<'_>) -> Result<()> {
    let Some((first, ..)) = members.first() else { return Ok(()) };
    let (name, bytes) = (first.cell.name, bytes(first)?);
    macro_rules! of_cell {
        ($members:ident, $unit:ident) => {{
            let mut units = Vec::with_capacity($members.len());
            for (call, outcome, bars, _) in &mut $members {
                let (states, ct) = read(outcome)?;
                let pull = Pull {
                    states: parts(states),
                    ct: parts(ct),
                    last_ct: outcome.last_ct.map(parts),
                    bars: bars.iter_mut().map(Bar::of_real).collect(),
                };
                units.push(($unit::of(&alone(call.clone())?, None)?, pull));
            }
            cell::backward(units, budget)
        }};
    }
    together(members, bytes, |mut members| match name {
        "recurrence" => {
            let mut units = Vec::with_capacity(members.len());
            for (call, outcome, bars, of_operator) in &mut members {
                let (states, ct) = read(outcome)?;
                let [bars, of_operator] =
                    [bars, of_operator].map(|bars| bars.iter_mut().map(Bar::again).collect());
                units.push(member(call, recurrence::Pull { states, ct, bars, of_operator })?);
            }
            recurrence::backward(units, budget)
        }
        "gru" | "goru" => of_cell!(members, Gru),
        "lstm" => of_cell!(members, Lstm),
        "rum" => of_cell!(members, Rum),
        _ => refused(name),
    })
}

/// The states that the device writes, which are all.
fn states<T>(written: Written<'_, T>) -> Result<&mut [T]> {
    match written {
        Written { states: Some(states), last: None, marks: None } => Ok(states),
        _ => Err(whole()),
    }
}

/// A cell whose matrices are all in its arrays.
fn alone<'a, T: Scalar>(call: Call<'a, T>) -> Result<Call<'a, T::Real>> {
    if call.transition.is_some() {
        return refused("W_h other than as a matrix");
    }
    call.real()
}

/// The affine cell of a call.
fn member<'a, T: Scalar, R>(call: &'a Call<'_, T>, results: R) -> Result<Member<'a, T, R>> {
    let Some((object, _)) = &call.transition else {
        return Err(Error::value("transition", "must be given"));
    };
    let Some(operator) = call.operator()? else { return Err(Error::value("transition", "must be given")) };
    Ok(Member { object, operator, sequence: Sequence::of(call)?, results })
}

/// Bytes of the states of a member.
fn bytes<T: Scalar>(call: &Call<'_, T>) -> Result<usize> {
    let [steps, batch, _, n] = call.sizes()?;
    let sizes = [steps, batch, n, call.cell.width];
    Ok(sizes.iter().fold(size_of::<T>(), |all, &size| all.saturating_mul(size)))
}

/// Calls `f` with as many members as are submitted together.
fn together<M>(members: Vec<M>, bytes: usize, f: impl Fn(Vec<M>) -> Result<()>) -> Result<()> {
    let most = (TOGETHER / bytes.max(1)).max(1);
    let mut members = members.into_iter();
    loop {
        let part: Vec<_> = members.by_ref().take(most).collect();
        if part.is_empty() {
            return Ok(());
        }
        f(part)?;
    }
}

/// The states that the device reads, and their cotangents.
fn read<'a, T: Copy>(outcome: &Outcome<'a, T>) -> Result<(&'a [T], &'a [T])> {
    match (outcome.states, outcome.ct) {
        (Trajectory::All(states), Cotangent::States(ct)) => Ok((states, ct)),
        _ => Err(whole()),
    }
}

fn whole() -> Error {
    Error::Unsupported("backend='gpu' computes and reads all states".into())
}
