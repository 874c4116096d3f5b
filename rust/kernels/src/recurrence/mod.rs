//! Kernels of the steps of all recurrences.

mod affine;
mod cornn;
mod cross;
mod few;
mod gates;
mod lem;
mod lstm;
mod rum;

pub use affine::{Affine, Finish, Sweep};
pub use cornn::{Oscillate, OscillatePull, Oscillator};
pub use cross::Cross;
pub use few::FEW;
pub use gates::{Area, Blend, BlendPull, Reset, ResetPull};
pub use lem::{Express, ExpressPull, Remember, RememberPull};
pub use lstm::{LstmGates, LstmGatesPull};
pub use rum::{Heard, HeardPull, Sphere, SpherePull, heard_len};

use crate::dispatch::compiled;
use crate::scalar::Real;

compiled! {
    /// Steps, compiled for each real type.
    RecurrenceKernels: Real for f32, f64; {
        /// [`Sweep`]
        fn affine(Sweep);
        /// [`Cross`]
        fn cross(Cross);
        /// [`Reset`]
        fn reset(Reset);
        /// [`Blend`]
        fn blend(Blend);
        /// [`BlendPull`]
        fn blend_pull(BlendPull);
        /// [`ResetPull`]
        fn reset_pull(ResetPull);
        /// [`LstmGates`]
        fn lstm_gates(LstmGates);
        /// [`LstmGatesPull`]
        fn lstm_gates_pull(LstmGatesPull);
        /// [`Oscillate`]
        fn oscillate(Oscillate);
        /// [`OscillatePull`]
        fn oscillate_pull(OscillatePull);
        /// [`Remember`]
        fn remember(Remember);
        /// [`RememberPull`]
        fn remember_pull(RememberPull);
        /// [`Express`]
        fn express(Express);
        /// [`ExpressPull`]
        fn express_pull(ExpressPull);
        /// [`Heard`]
        fn heard(Heard);
        /// [`HeardPull`]
        fn heard_pull(HeardPull);
        /// [`Sphere`]
        fn sphere(Sphere);
        /// [`SpherePull`]
        fn sphere_pull(SpherePull);
    }
}
