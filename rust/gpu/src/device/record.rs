//! Dispatches of one call, recorded and submitted together.

use super::Context;
use crate::Array;
use crate::shader::Variant;
use isometry_core::error::{Error, Result};
use std::sync::Arc;
use wgpu::{BindGroupDescriptor, BindGroupEntry, CommandEncoder, ComputePass};

/// A sequence of dispatches; each sees what those before it wrote.
pub(crate) struct Record {
    context: Arc<Context>,
    encoder: CommandEncoder,
    pass: Option<ComputePass<'static>>,
    /// What the dispatches use: freed before they are submitted, its memory would be written by a call that comes first.
    held: Vec<Array>,
}

impl Record {
    pub fn new(context: &Arc<Context>) -> Result<Self> {
        context.alive()?;
        let encoder = context.device.create_command_encoder(&Default::default());
        Ok(Record { context: context.clone(), encoder, pass: None, held: Vec::new() })
    }

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
        let name = variant.shader.name;
        let most = self.context.most_groups() as usize;
        if groups.iter().any(|&count| count > most) {
            let adapter = &self.context.adapter().name;
            return Err(Error::Device(format!(
                "{name} of {groups:?} workgroups is too large: {adapter} runs {most} along an axis"
            )));
        }
        if groups.contains(&0) {
            return Ok(());
        }
        let pipeline = self.context.pipeline(variant)?;
        let missing = |what: &str| Error::Device(format!("shader {name}: no array {what}"));
        let mut entries = Vec::with_capacity(arrays.len());
        for binding in &pipeline.interface.bindings {
            let (_, array) = arrays
                .iter()
                .find(|(name, _)| *name == binding.name)
                .ok_or_else(|| missing(&binding.name))?;
            let resource = array.memory().buffer()?.as_entire_binding();
            entries.push(BindGroupEntry { binding: binding.number, resource });
            self.held.push((*array).clone());
        }
        if let Some((extra, _)) =
            arrays.iter().find(|(key, _)| pipeline.interface.bindings.iter().all(|b| b.name != *key))
        {
            return Err(missing(extra));
        }
        let bytes: Vec<u8> = sizes.iter().flat_map(|size| size.to_ne_bytes()).collect();
        if bytes.len() != pipeline.interface.sizes as usize {
            let expected = pipeline.interface.sizes / 4;
            return Err(Error::Device(format!("shader {name}: {} sizes instead of {expected}", sizes.len())));
        }
        let descriptor =
            BindGroupDescriptor { label: Some(name), layout: &pipeline.layout, entries: &entries };
        let bound = self.context.device.create_bind_group(&descriptor);
        let pass = self
            .pass
            .get_or_insert_with(|| self.encoder.begin_compute_pass(&Default::default()).forget_lifetime());
        pass.set_pipeline(&pipeline.pipeline);
        pass.set_bind_group(0, &bound, &[]);
        if !bytes.is_empty() {
            pass.set_immediates(0, &bytes);
        }
        let [x, y, z] = groups.map(|count| count as u32);
        pass.dispatch_workgroups(x, y, z);
        Ok(())
    }

    /// Runs a shader on `count` elements, 256 for each workgroup: element (y groups + x) 256 + thread.
    pub fn elements(
        &mut self,
        variant: Variant,
        arrays: &[(&str, &Array)],
        sizes: &[u32],
        count: usize,
    ) -> Result<()> {
        if u32::try_from(count).is_err() {
            return Err(Error::Device(format!(
                "{count} elements are too many for the indices of the device, 32 bits"
            )));
        }
        let groups = count.div_ceil(256);
        let along = groups.clamp(1, 32768);
        self.dispatch(variant, arrays, sizes, [along, groups.div_ceil(along), 1])
    }

    /// Submits all dispatches; does not wait for them.
    pub fn submit(self) -> Result<()> {
        let Record { context, encoder, pass, held } = self;
        drop(pass);
        let done = context.scoped(|| {
            context.queue.submit([encoder.finish()]);
            Ok(())
        });
        drop(held);
        done
    }
}
