//! A device with its queue, its pipelines and its free memory: made at the first call that needs it, one for a process.

use super::adapter::{Adapter, chosen, described};
use super::memory::Pool;
use crate::shader::{Interface, Variant};
use isometry_core::error::{Error, Result};
use std::collections::HashMap;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use wgpu::{
    BindGroupLayoutDescriptor, BindGroupLayoutEntry, BindingType, BufferBindingType,
    ComputePipelineDescriptor, Device, DeviceDescriptor, ErrorFilter, Features, Limits,
    PipelineCompilationOptions, PipelineLayoutDescriptor, Queue, ShaderModuleDescriptor, ShaderSource,
    ShaderStages,
};

/// A shader that is ready to run.
pub(super) struct Pipeline {
    pub pipeline: wgpu::ComputePipeline,
    pub layout: wgpu::BindGroupLayout,
    pub interface: Interface,
}

/// A device and what is kept for it.
pub struct Context {
    pub(super) device: Device,
    pub(super) queue: Queue,
    pub(super) pool: Pool,
    adapter: Adapter,
    limits: Limits,
    pipelines: Mutex<HashMap<Variant, Arc<Pipeline>>>,
    lost: Arc<Mutex<Option<String>>>,
    process: u32,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Context({:?})", self.adapter)
    }
}

static CURRENT: Mutex<Option<Arc<Context>>> = Mutex::new(None);

/// The context of this process, made by the first call. A forked child makes its own; that of the parent is left alone, and none
/// is ended at the exit, where drivers may be gone already.
pub fn context() -> Result<Arc<Context>> {
    let mut held = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(context) = held.as_ref().filter(|context| context.alive().is_ok()) {
        return Ok(context.clone());
    }
    let context = Arc::new(Context::new()?);
    if let Some(before) = held.replace(context.clone())
        && before.is_inherited()
    {
        std::mem::forget(before);
    }
    Ok(context)
}

/// Closes the device of this process, if it is open: its arrays are gone, its memory is free, the next call opens it again.
pub fn reset() {
    let mut held = CURRENT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(context) = held.take_if(|context| !context.is_inherited()) {
        context.close();
    }
}

impl Context {
    fn new() -> Result<Self> {
        let adapter = chosen()?;
        let limits = adapter.limits();
        let described = described(&adapter);
        let wanted = DeviceDescriptor {
            label: Some("isometry"),
            required_features: Features::IMMEDIATES,
            required_limits: limits.clone(),
            ..Default::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&wanted))
            .map_err(|error| Error::Device(format!("{} cannot be opened: {error}", described.name)))?;
        let lost = Arc::new(Mutex::new(None));
        let seen = lost.clone();
        device.set_device_lost_callback(move |reason, message| {
            let text = format!("{reason:?}: {message}");
            seen.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(text);
        });
        // errors are seen by scopes; what comes later is that of a lost device
        let seen = lost.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            seen.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error.to_string());
        }));
        let pool = Pool::default();
        Ok(Context {
            device,
            queue,
            pool,
            adapter: described,
            limits,
            pipelines: Mutex::default(),
            lost,
            process: process::id(),
        })
    }

    /// The adapter of the device.
    pub fn adapter(&self) -> &Adapter {
        &self.adapter
    }

    /// Most bytes of an array.
    pub fn most_bytes(&self) -> u64 {
        self.adapter.most_bytes
    }

    /// Most workgroups along an axis of a dispatch.
    pub fn most_groups(&self) -> u32 {
        self.limits.max_compute_workgroups_per_dimension
    }

    /// Waits for all that was submitted.
    pub fn wait(&self) -> Result<()> {
        self.scoped(|| {
            let failed = |e| Error::Device(format!("{} did not answer: {e}", self.adapter.name));
            self.device.poll(wgpu::PollType::wait_indefinitely()).map(|_| ()).map_err(failed)
        })
    }

    fn close(&self) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        lost.get_or_insert_with(|| "it was reset".into());
        drop(lost);
        self.pool.clear();
        self.device.destroy();
    }

    /// Whether it is that of the parent, whose threads a forked child does not have.
    pub(super) fn is_inherited(&self) -> bool {
        self.process != process::id()
    }

    /// Why the device cannot be used any more.
    pub fn lost(&self) -> Option<String> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// An error if the device is lost, or that of the parent process.
    pub(super) fn alive(&self) -> Result<()> {
        if self.is_inherited() {
            let text = "an array on the GPU was made before the fork, in the parent process: upload it again";
            return Err(Error::Device(text.into()));
        }
        let message = |why| {
            format!(
                "{} was lost ({why}): its arrays are gone; a later call opens it again, and the CPU goes on",
                self.adapter.name
            )
        };
        self.lost().map_or(Ok(()), |why| Err(Error::Device(message(why))))
    }

    /// Runs `f`; an error of the device that it causes is returned.
    pub(super) fn scoped<R>(&self, f: impl FnOnce() -> Result<R>) -> Result<R> {
        self.alive()?;
        let filters = [ErrorFilter::Internal, ErrorFilter::OutOfMemory, ErrorFilter::Validation];
        let scopes = filters.map(|filter| self.device.push_error_scope(filter));
        let done = f();
        let mut first = None;
        for scope in scopes.into_iter().rev() {
            first = first.or(pollster::block_on(scope.pop()));
        }
        self.alive()?;
        match first {
            None => done,
            Some(wgpu::Error::OutOfMemory { .. }) => {
                let name = &self.adapter.name;
                Err(Error::Device(format!(
                    "{name} has not enough free memory for this call: free arrays, split the batch, or use backend=\"cpu\""
                )))
            }
            Some(error) => Err(Error::Device(format!("{}: {error}", self.adapter.name))),
        }
    }

    pub(super) fn pipeline(&self, variant: Variant) -> Result<Arc<Pipeline>> {
        let mut held = self.pipelines.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pipeline) = held.get(&variant) {
            return Ok(pipeline.clone());
        }
        let pipeline = Arc::new(self.scoped(|| self.compiled(variant))?);
        held.insert(variant, pipeline.clone());
        Ok(pipeline)
    }

    fn compiled(&self, variant: Variant) -> Result<Pipeline> {
        let (name, text) = (variant.shader.name, variant.text());
        let interface = Interface::of(name, &text)?;
        let source = ShaderSource::Wgsl(text.into());
        let module = self.device.create_shader_module(ShaderModuleDescriptor { label: Some(name), source });
        let entries: Vec<_> = interface
            .bindings
            .iter()
            .map(|binding| BindGroupLayoutEntry {
                binding: binding.number,
                visibility: ShaderStages::COMPUTE,
                ty: BindingType::Buffer {
                    ty: BufferBindingType::Storage { read_only: !binding.written },
                    has_dynamic_offset: false,
                    min_binding_size: None,
                },
                count: None,
            })
            .collect();
        let entries = BindGroupLayoutDescriptor { label: Some(name), entries: &entries };
        let layout = self.device.create_bind_group_layout(&entries);
        let whole = self.device.create_pipeline_layout(&PipelineLayoutDescriptor {
            label: Some(name),
            bind_group_layouts: &[Some(&layout)],
            immediate_size: interface.sizes,
        });
        let constants: Vec<_> =
            variant.constants.iter().map(|&(key, value)| (key, f64::from(value))).collect();
        let options =
            PipelineCompilationOptions { constants: &constants, zero_initialize_workgroup_memory: false };
        let pipeline = self.device.create_compute_pipeline(&ComputePipelineDescriptor {
            label: Some(name),
            layout: Some(&whole),
            module: &module,
            entry_point: Some("main"),
            compilation_options: options,
            cache: None,
        });
        Ok(Pipeline { pipeline, layout, interface })
    }
}
