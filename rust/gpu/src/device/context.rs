//! A device with its queue, its pipelines and its free memory.

use super::adapter::{Adapter, CPU, chosen, described, limits};
use super::current;
use super::kept::Kept;
use super::memory::Pool;
use super::scopes::Scopes;
use super::statistics::{Counts, What};
use crate::shader::{Interface, Variant};
use isometry_core::{Error, Result};
use std::collections::HashMap;
use std::mem::{forget, take};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};
use wgpu::{
    BindGroupLayoutDescriptor, BindGroupLayoutEntry, BindingType, BufferBindingType, CommandBuffer,
    ComputePipelineDescriptor, Device, DeviceDescriptor, Features, Limits, PipelineCompilationOptions,
    PipelineLayoutDescriptor, PollType, Queue, ShaderModuleDescriptor, ShaderRuntimeChecks, ShaderSource,
    ShaderStages,
};

/// How often a wait asks whether it is cancelled.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(50);
/// Between polls: first little, for short work, then more.
const SHORTEST_PAUSE: Duration = Duration::from_micros(5);
/// The longest pause between polls.
const LONGEST_PAUSE: Duration = Duration::from_micros(500);

/// A shader that is ready to run.
pub(super) struct Pipeline {
    pub pipeline: wgpu::ComputePipeline,
    pub layout: wgpu::BindGroupLayout,
    pub interface: Interface,
}

/// Whether what was submitted before it was made has ended.
pub(super) struct Ended(Arc<AtomicBool>);

impl Ended {
    pub fn get(&self) -> bool {
        self.0.load(Acquire)
    }
}

/// A device and what is kept for it.
pub struct Context {
    pub(super) device: Device,
    pub(super) queue: Queue,
    pub(super) pool: Pool,
    /// Memory of the host, for downloads.
    pub(super) downloads: Pool,
    pub(crate) kept: Kept,
    adapter: Adapter,
    limits: Limits,
    pipelines: Mutex<HashMap<Variant, Arc<Pipeline>>>,
    lost: Arc<Mutex<Option<String>>>,
    process: u32,
    counts: &'static Counts,
}

/// A child leaves the device of its parent alone: closing it would wait for driver threads that do not exist
/// in the child.
impl Drop for Context {
    fn drop(&mut self) {
        if self.is_inherited() {
            let pipelines = self.pipelines.get_mut().unwrap_or_else(PoisonError::into_inner);
            // one more reference to each than will be dropped
            let pools = [&mut self.pool, &mut self.downloads].map(Pool::emptied);
            forget((self.device.clone(), self.queue.clone(), pools, take(pipelines)));
        }
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Context({:?})", self.adapter)
    }
}

/// An error for what is too large for a device, with what to do about it.
pub(crate) fn too_large(what: impl std::fmt::Display) -> Error {
    Error::Device(format!("{what}; split the batch, or use backend=\"cpu\""))
}

/// A count as an index of shaders, which have 32 bits.
pub(crate) fn index(count: usize, what: impl std::fmt::Display) -> Result<u32> {
    let text = || format!("{what} are too many for the indices of the device, 32 bits");
    u32::try_from(count).map_err(|_| too_large(text()))
}

impl Context {
    pub(crate) fn new() -> Result<Self> {
        let adapter = chosen()?;
        let limits = limits(&adapter);
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
        // scopes catch the errors of calls; an error outside of them means that the device was lost
        let seen = lost.clone();
        device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            seen.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error.to_string());
        }));
        Ok(Context {
            device,
            queue,
            pool: Pool::of_arrays(),
            downloads: Pool::of_downloads(),
            kept: Kept::default(),
            adapter: described,
            limits,
            pipelines: Mutex::default(),
            lost,
            process: process::id(),
            counts: current::counts(),
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

    /// Bytes of all its memory, that of the pools included, where the driver tells.
    #[cfg(test)]
    pub fn bytes(&self) -> u64 {
        self.device.generate_allocator_report().map_or(0, |report| report.total_allocated_bytes)
    }

    /// Most workgroups along an axis of a dispatch.
    pub fn most_groups(&self) -> u32 {
        self.limits.max_compute_workgroups_per_dimension
    }

    /// Waits for all that was submitted, or until the call is cancelled.
    pub fn wait(&self, cancel: &dyn Fn() -> bool) -> Result<()> {
        self.scoped(|| {
            self.settled(cancel)?;
            // uploads wait for a submission
            self.submit(None);
            self.count(What::Waits, 1);
            self.polled(cancel)
        })
    }

    /// Adds to the counts of this process.
    pub(super) fn count(&self, what: What, count: usize) {
        self.counts.add(what, count);
    }

    /// Submits commands, and what was uploaded before.
    pub(super) fn submit(&self, commands: Option<CommandBuffer>) {
        self.queue.submit(commands);
        self.count(What::Submissions, 1);
    }

    /// On an adapter that is the CPU a submission waits for those before it, and cannot be cancelled: before one that follows a
    /// long one, waits for that.
    pub(crate) fn settled(&self, cancel: &dyn Fn() -> bool) -> Result<()> {
        if self.is_cpu() { self.polled(cancel) } else { Ok(()) }
    }

    /// Whether the adapter is software.
    pub(crate) fn is_cpu(&self) -> bool {
        self.adapter.kind == CPU
    }

    /// Whether all that was submitted has ended.
    pub(super) fn ended(&self) -> Ended {
        let ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ended);
        self.queue.on_submitted_work_done(move || seen.store(true, Release));
        Ended(ended)
    }

    /// Waits for all that was submitted.
    pub(super) fn polled(&self, cancel: &dyn Fn() -> bool) -> Result<()> {
        let ended = self.ended();
        self.waited(|| ended.get(), cancel)
    }

    /// Waits until something that the device says is true; if the call is cancelled meanwhile, the device completes it for nobody.
    ///
    /// It asks again and again: a wait of wgpu with a timeout panics where another thread's submission completes the queue
    /// between its timeout and its end.
    pub(super) fn waited(&self, ready: impl Fn() -> bool, cancel: &dyn Fn() -> bool) -> Result<()> {
        let (mut pause, mut asked) = (Duration::ZERO, Instant::now());
        loop {
            self.guarded(PollType::Poll)?;
            if ready() {
                return Ok(());
            }
            self.alive()?;
            if asked.elapsed() > BETWEEN_QUESTIONS {
                if cancel() {
                    return Err(Error::Interrupted);
                }
                asked = Instant::now();
            }
            sleep(pause);
            pause = (pause * 2).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        }
    }

    /// One poll; wgpu panics where the device is lost meanwhile.
    fn guarded(&self, poll: PollType) -> Result<()> {
        match catch_unwind(AssertUnwindSafe(|| self.device.poll(poll))) {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(e)) => Err(Error::Device(format!("{} did not answer: {e}", self.adapter.name))),
            Err(_) => {
                self.lose("it did not answer".into());
                self.alive()
            }
        }
    }

    /// Makes all later calls fail with this reason, unless there is an earlier one.
    fn lose(&self, why: String) {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    }

    /// Gives all memory back that no array has; arrays that are kept end first, whose memory goes to the pool.
    pub(super) fn free(&self) {
        self.kept.clear();
        self.pool.clear();
        self.downloads.clear();
    }

    /// Ends the device.
    pub(super) fn close(&self) {
        self.lose("it was reset".into());
        self.free();
        self.device.destroy();
        // memory that was in use is freed by a poll after its use
        drop(self.guarded(PollType::Wait { submission_index: None, timeout: None }));
    }

    /// Whether the device belongs to the parent process, whose threads a forked child does not have.
    pub(super) fn is_inherited(&self) -> bool {
        self.process != process::id()
    }

    /// The reason why the device cannot be used any more.
    pub fn lost(&self) -> Option<String> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// An error if the device is lost, or belongs to the parent process.
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
        let scopes = Scopes::new(&self.device);
        let done = f();
        self.outcome(scopes)?;
        done
    }

    /// The error of the calls since the scopes were opened.
    pub(super) fn outcome(&self, scopes: Scopes) -> Result<()> {
        let first = scopes.close();
        self.alive()?;
        match first {
            None => Ok(()),
            Some(wgpu::Error::OutOfMemory { .. }) => {
                let name = &self.adapter.name;
                Err(too_large(format!("{name} has not enough free memory for this call: free arrays")))
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

    /// Compiles a shader.
    fn compiled(&self, variant: Variant) -> Result<Pipeline> {
        let (name, text) = (variant.shader.name, variant.text());
        let interface = Interface::of(name, &text)?;
        let source = ShaderSource::Wgsl(text.into());
        let described = ShaderModuleDescriptor { label: Some(name), source };
        let checks = ShaderRuntimeChecks { force_loop_bounding: false, ..ShaderRuntimeChecks::checked() };
        // A second counter, which wgpu adds against endless loops, would double the work of short ones.
        // SAFETY: every loop of these shaders counts up to a size, hence ends.
        let module = unsafe { self.device.create_shader_module_trusted(described, checks) };
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
