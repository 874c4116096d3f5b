//! Dispatches of one call, recorded and submitted together, a long one in parts.

use super::context::Ended;
use super::scopes::Scopes;
use super::statistics::What;
use super::{Context, index, too_large};
use crate::Array;
#[cfg(any(test, feature = "proof"))]
use crate::Field;
use crate::shader::{Variant, groups};
use isometry_core::internal::sizes::check_len;
use isometry_core::{Error, Result};
use std::mem::replace;
use std::sync::Arc;
use wgpu::{BindGroupDescriptor, BindGroupEntry, CommandEncoder, ComputePass};

/// Most dispatches of a submission; tests cross the bounds with small arrays.
const DISPATCHES: usize = if cfg!(test) { 64 } else { 4096 };
/// Most real multiply-adds of a submission, and of a dispatch of products, which takes 0.2 s where a device has 1 TFLOP/s: a driver that
/// considers a device hung resets it, after 2 s on Windows.
pub(crate) const WORK: usize = if cfg!(test) { 1 << 20 } else { 1 << 36 };

/// A sequence of dispatches; each sees the results of those before it.
///
/// A call of more than [`DISPATCHES`] or [`WORK`] is submitted in parts. After each the record asks whether the call is cancelled, and
/// waits for the part before: the device always has one in hand, and a cancelled call leaves two behind.
pub struct Record<'c> {
    context: Arc<Context>,
    cancel: &'c dyn Fn() -> bool,
    encoder: CommandEncoder,
    pass: Option<ComputePass<'static>>,
    /// Dispatches and multiply-adds since the last submission.
    dispatches: usize,
    work: usize,
    /// Whether the last part has ended.
    last: Option<Ended>,
    /// The arrays that the dispatches use: if freed before the submission, their memory could be written by a
    /// call submitted earlier.
    held: Vec<Array>,
    /// What happens once the dispatches are submitted.
    after: Vec<Box<dyn FnOnce()>>,
    /// Error scopes, dropped after the fields above.
    scopes: Scopes,
}

impl<'c> Record<'c> {
    /// An empty record of a call that is not cancelled.
    pub fn new(context: &Arc<Context>) -> Result<Self> {
        Self::until(context, &|| false)
    }

    /// The same, unless it is cancelled.
    pub fn until(context: &Arc<Context>, cancel: &'c dyn Fn() -> bool) -> Result<Self> {
        context.alive()?;
        let scopes = Scopes::new(&context.device);
        let encoder = context.device.create_command_encoder(&Default::default());
        Ok(Record {
            context: context.clone(),
            cancel,
            encoder,
            pass: None,
            dispatches: 0,
            work: 0,
            last: None,
            held: Vec::new(),
            after: Vec::new(),
            scopes,
        })
    }

    /// The device.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// Runs a shader on `groups` workgroups: its arrays by name, its sizes as the shader declares them.
    pub fn dispatch(
        &mut self,
        variant: Variant,
        arrays: &[(&str, &Array)],
        sizes: &[u32],
        groups: [usize; 3],
    ) -> Result<()> {
        self.dispatches(variant, arrays, [sizes], groups, 0)
    }

    /// The same for several sizes in turn, on the same arrays; each has so many multiply-adds.
    pub fn dispatches(
        &mut self,
        variant: Variant,
        arrays: &[(&str, &Array)],
        sizes: impl IntoIterator<Item = impl AsRef<[u32]>>,
        groups: [usize; 3],
        work: usize,
    ) -> Result<()> {
        #[cfg(any(test, feature = "proof"))]
        if crate::proof::races::sought()
            && arrays.iter().all(|(name, _)| !crate::proof::races::OWN.contains(name))
        {
            return sizes
                .into_iter()
                .try_for_each(|sizes| self.watched(variant, arrays, sizes.as_ref(), groups, work));
        }
        let name = variant.shader.name;
        let most = self.context.most_groups() as usize;
        if groups.iter().any(|&count| count > most) {
            let adapter = &self.context.adapter().name;
            return Err(too_large(format!(
                "{name} of {groups:?} workgroups is too large: {adapter} runs {most} along an axis"
            )));
        }
        if groups.contains(&0) {
            return Ok(());
        }
        let pipeline = self.context.pipeline(variant)?;
        let missing = |what: &str| Error::Device(format!("shader {name}: no array {what}"));
        let mut entries = Vec::with_capacity(arrays.len());
        let mut used = Vec::with_capacity(arrays.len());
        for binding in &pipeline.interface.bindings {
            let (_, array) = arrays
                .iter()
                .find(|(name, _)| *name == binding.name)
                .ok_or_else(|| missing(&binding.name))?;
            self.check(array)?;
            let resource = array.memory().buffer()?.as_entire_binding();
            entries.push(BindGroupEntry { binding: binding.number, resource });
            used.push((*array).clone());
        }
        if let Some((extra, _)) =
            arrays.iter().find(|(key, _)| pipeline.interface.bindings.iter().all(|b| b.name != *key))
        {
            return Err(missing(extra));
        }
        let expected = pipeline.interface.sizes as usize / 4;
        let descriptor =
            BindGroupDescriptor { label: Some(name), layout: &pipeline.layout, entries: &entries };
        let bound = self.context.device.create_bind_group(&descriptor);
        let [x, y, z] = groups.map(|count| count as u32);
        let mut bind = true;
        for sizes in sizes {
            if self.dispatches == DISPATCHES || self.work.saturating_add(work) > WORK {
                self.submit_part()?;
                bind = true;
            }
            let pass = self.pass.get_or_insert_with(|| {
                self.encoder.begin_compute_pass(&Default::default()).forget_lifetime()
            });
            if std::mem::take(&mut bind) {
                pass.set_pipeline(&pipeline.pipeline);
                pass.set_bind_group(0, &bound, &[]);
                self.held.extend_from_slice(&used);
            }
            let sizes = sizes.as_ref();
            if sizes.len() != expected {
                let wrong = sizes.len();
                return Err(Error::Device(format!("shader {name}: {wrong} sizes instead of {expected}")));
            }
            let bytes: Vec<u8> = sizes.iter().flat_map(|size| size.to_ne_bytes()).collect();
            if !bytes.is_empty() {
                pass.set_immediates(0, &bytes);
            }
            pass.dispatch_workgroups(x, y, z);
            self.dispatches += 1;
            self.work = self.work.saturating_add(work);
            self.context.count(What::Dispatches, 1);
        }
        Ok(())
    }

    /// A dispatch that notes races, which are looked at once the call is submitted.
    #[cfg(any(test, feature = "proof"))]
    fn watched(
        &mut self,
        variant: Variant,
        arrays: &[(&str, &Array)],
        sizes: &[u32],
        groups: [usize; 3],
        work: usize,
    ) -> Result<()> {
        use crate::proof::races;
        let (sizes_of, count) = races::sizes(&self.context.pipeline(variant)?.interface, arrays, groups);
        let words = Array::room(&self.context, Field::Real, &[count])?;
        let sizes_of = Array::upload(&self.context, Field::Real, &[sizes_of.len()], &sizes_of)?;
        self.fill(&words, None)?;
        let own = races::OWN.into_iter().zip([&sizes_of, &words]);
        let arrays: Vec<_> = arrays.iter().copied().chain(own).collect();
        self.dispatches(variant, &arrays, [sizes], groups, work)?;
        self.after(move || races::check(&words, variant));
        Ok(())
    }

    /// Submits what was recorded, and waits for the part before.
    fn submit_part(&mut self) -> Result<()> {
        if self.dispatches == 0 {
            return Ok(());
        }
        self.pass = None;
        let next = self.context.device.create_command_encoder(&Default::default());
        let commands = replace(&mut self.encoder, next).finish();
        self.context.settled(self.cancel)?;
        if (self.cancel)() {
            return Err(Error::Interrupted);
        }
        self.context.submit(Some(commands));
        self.held.clear();
        (self.dispatches, self.work) = (0, 0);
        if let Some(before) = self.last.replace(self.context.ended()) {
            self.context.count(What::Waits, 1);
            self.context.waited(|| before.get(), self.cancel)?;
        }
        Ok(())
    }

    /// Runs a shader on `count` elements, the first of its sizes, 256 for each workgroup: element (y groups + x) 256 + thread.
    pub fn elements(
        &mut self,
        variant: Variant,
        arrays: &[(&str, &Array)],
        sizes: &[u32],
        count: usize,
    ) -> Result<()> {
        index(count, format_args!("{count} elements"))?;
        self.dispatch(variant, arrays, sizes, groups(count.div_ceil(256)))
    }

    /// Copies an array.
    pub fn copy(&mut self, from: &Array, to: &Array) -> Result<()> {
        self.join(&[from], to)
    }

    /// Copies arrays one after the other.
    pub fn join(&mut self, parts: &[&Array], to: &Array) -> Result<()> {
        check_len("to", to.len(), &[parts.iter().map(|part| part.len()).sum()])?;
        let mut first = 0;
        for part in parts {
            self.copy_part((part, 0), (to, first), part.len())?;
            first += part.len();
        }
        Ok(())
    }

    /// Copies `count` elements, from one place to another.
    pub fn copy_part(
        &mut self,
        (from, first): (&Array, usize),
        (to, into): (&Array, usize),
        count: usize,
    ) -> Result<()> {
        self.check(from)?;
        self.check(to)?;
        self.pass = None;
        self.held.extend([from.clone(), to.clone()]);
        self.context.count(What::Copies, 1);
        let [first, into, bytes] = [first, into, count].map(|n| (n * from.field().bytes()) as u64);
        let (source, target) = (from.memory().buffer()?, to.memory().buffer()?);
        self.encoder.copy_buffer_to_buffer(source, first, target, into, bytes);
        Ok(())
    }

    /// Copies an array, or writes zeros.
    pub fn fill(&mut self, to: &Array, from: Option<&Array>) -> Result<()> {
        if let Some(from) = from {
            return self.copy(from, to);
        }
        self.check(to)?;
        self.pass = None;
        self.held.push(to.clone());
        self.encoder.clear_buffer(to.memory().buffer()?, 0, None);
        Ok(())
    }

    /// Refuses an array of another device.
    fn check(&self, array: &Array) -> Result<()> {
        if Arc::ptr_eq(&self.context, array.context()) {
            return Ok(());
        }
        array.context().alive()?;
        Err(Error::value("arrays", "must be on one device"))
    }

    /// Runs `f` once all dispatches are submitted: then other calls may read what they write.
    pub fn after(&mut self, f: impl FnOnce() + 'static) {
        self.after.push(Box::new(f));
    }

    /// Submits all dispatches; does not wait for them.
    pub fn submit(self) -> Result<()> {
        let Record { context, encoder, pass, held, after, scopes, .. } = self;
        drop(pass);
        context.alive()?;
        context.submit(Some(encoder.finish()));
        let done = context.outcome(scopes);
        drop(held);
        if done.is_ok() {
            after.into_iter().for_each(|f| f());
        }
        done
    }
}
