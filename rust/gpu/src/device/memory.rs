//! Memory of the device, reused: freed memory goes to a pool, by size. The queue runs in order, so memory may
//! be reused while the device still works on it. So is the memory of the host through which arrays are downloaded, once its numbers are read.

use super::statistics::What;
use super::{Context, too_large};
use isometry_core::{Error, Result};
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use wgpu::{Buffer, BufferAsyncError, BufferDescriptor, BufferUsages, MapMode};

/// Free memory, up to so many bytes.
pub(super) struct Pool(Mutex<Free>, u64);

#[derive(Default)]
struct Free {
    by_size: HashMap<u64, Vec<Buffer>>,
    bytes: u64,
}

impl Pool {
    /// For arrays.
    pub fn of_arrays() -> Self {
        Pool(Mutex::default(), KEPT_BYTES)
    }

    /// For downloads.
    pub fn of_downloads() -> Self {
        Pool(Mutex::default(), KEPT_BYTES / 4)
    }

    fn free(&self) -> MutexGuard<'_, Free> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, size: u64) -> Option<Buffer> {
        let mut free = self.free();
        let buffer = free.by_size.get_mut(&size)?.pop()?;
        free.bytes -= size;
        Some(buffer)
    }

    /// Keeps a buffer if there is room.
    fn give(&self, buffer: Buffer) {
        let mut free = self.free();
        let size = buffer.size();
        if free.bytes + size > self.1 {
            return;
        }
        let same = free.by_size.entry(size).or_default();
        if same.len() < KEPT {
            same.push(buffer);
            free.bytes += size;
        }
    }

    #[cfg(test)]
    pub fn bytes(&self) -> u64 {
        self.free().bytes
    }

    /// Returns all free memory to the system.
    pub fn clear(&self) {
        *self.free() = Free::default();
    }

    /// Takes out all free memory, without waiting for the lock.
    pub fn emptied(&mut self) -> impl Sized + use<> {
        std::mem::take(self.0.get_mut().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Free buffers of one size that are kept.
const KEPT: usize = 16;
/// Free bytes of arrays that are kept.
const KEPT_BYTES: u64 = 1 << 30;
/// The largest number of uploaded bytes that wait for a submission.
const STAGED: usize = 64 << 20;
/// The largest memory of the host for downloads. A large download is in parts, through two of them in turn: the device writes one while
/// the other is read.
const STAGING: usize = if cfg!(test) { 1 << 16 } else { 64 << 20 };
/// Bytes of the smallest memory: a binding must not be empty.
const LEAST: u64 = 256;

/// Some bytes of the device.
pub struct Memory {
    buffer: Option<Buffer>,
    context: Arc<Context>,
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Memory({} bytes)", self.buffer.as_ref().map_or(0, Buffer::size))
    }
}

impl Memory {
    /// The device it is on.
    pub fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// What a call has computed from these numbers and kept for later ones; they do not change.
    pub(crate) fn kept<K: Any + Clone>(&self) -> Option<K> {
        self.context.kept.get(Some(self))
    }

    /// Keeps this as long as the memory, or until another call keeps something or lacks memory. It must not hold the memory itself.
    pub(crate) fn keep(&self, kept: impl Any + Send) {
        self.context.kept.put(Some(self), kept);
    }

    /// The buffer; there is one until the memory is dropped.
    pub(super) fn buffer(&self) -> Result<&Buffer> {
        self.buffer.as_ref().ok_or_else(|| Error::Device("memory was used after its end".into()))
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let buffer = self.buffer.take();
        if self.context.is_inherited() {
            return std::mem::forget(buffer);
        }
        self.context.kept.end(self);
        if let Some(buffer) = buffer.filter(|_| self.context.lost().is_none()) {
            self.context.pool.give(buffer);
        }
    }
}

/// Sizes of memory: powers of two and three halves of them, so that little is wasted and much fits.
fn rounded(bytes: u64) -> u64 {
    let bytes = bytes.max(LEAST);
    let power = bytes.next_power_of_two();
    if bytes <= power / 4 * 3 { power / 4 * 3 } else { power }
}

impl Context {
    /// Memory of at least this many bytes, uninitialised.
    pub(crate) fn memory(self: &Arc<Self>, bytes: usize) -> Result<Memory> {
        self.alive()?;
        let (most, bytes) = (self.most_bytes(), bytes as u64);
        if bytes > most {
            let name = &self.adapter().name;
            return Err(too_large(format!(
                "an array of {bytes} bytes is too large: {name} takes {most} at most"
            )));
        }
        let size = rounded(bytes).min(most / 4 * 4);
        let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
        let descriptor = BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
        let buffer = self.pool.take(size).map_or_else(|| self.buffer(&descriptor), Ok)?;
        #[cfg(any(test, feature = "proof"))]
        self.poison(&buffer);
        Ok(Memory { buffer: Some(buffer), context: self.clone() })
    }

    /// Fills memory with NaN, so that tests notice reads of unwritten memory.
    #[cfg(any(test, feature = "proof"))]
    fn poison(&self, buffer: &Buffer) {
        let bytes = f32::NAN.to_ne_bytes().repeat(buffer.size() as usize / 4);
        self.queue.write_buffer(buffer, 0, &bytes);
    }

    /// Copies to the start of memory.
    pub(crate) fn write(&self, memory: &Memory, numbers: &[f32]) -> Result<()> {
        self.retried(|| {
            for (part, numbers) in numbers.chunks(STAGED / size_of::<f32>()).enumerate() {
                // SAFETY: every bit pattern of f32 is four bytes.
                let bytes =
                    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) };
                self.queue.write_buffer(memory.buffer()?, (part * STAGED) as u64, bytes);
                self.count(What::Uploaded, bytes.len());
                // written data wait in host memory for the next submission
                if bytes.len() >= STAGED / 64 {
                    self.submit(None);
                }
            }
            Ok(())
        })
    }

    /// Copies the starts of several memories, with one submission and one wait for each [`STAGING`] bytes.
    pub(crate) fn read(
        self: &Arc<Self>,
        to: &mut [(&Memory, &mut [f32])],
        cancel: &dyn Fn() -> bool,
    ) -> Result<()> {
        let mut last: Option<Part<'_>> = None;
        self.scoped(|| {
            self.settled(cancel)?;
            for pieces in parts(to) {
                let next = self.send(pieces)?;
                if let Some(before) = last.replace(next) {
                    self.receive(before, cancel)?;
                }
            }
            last.take().map_or(Ok(()), |part| self.receive(part, cancel))
        })
    }

    /// Makes the device write a part of a download.
    fn send<'t>(&self, pieces: Vec<Piece<'t>>) -> Result<Part<'t>> {
        let bytes = pieces.iter().map(|piece| size_of_val(&*piece.to) as u64).sum();
        let usage = BufferUsages::MAP_READ | BufferUsages::COPY_DST;
        let room = BufferDescriptor { label: None, size: rounded(bytes), usage, mapped_at_creation: false };
        let buffer = self.downloads.take(room.size).map_or_else(|| self.buffer(&room), Ok)?;
        let mut encoder = self.device.create_command_encoder(&Default::default());
        let mut at = 0;
        for Piece { memory, first, to } in &pieces {
            let bytes = size_of_val(&**to) as u64;
            encoder.copy_buffer_to_buffer(memory.buffer()?, *first, &buffer, at, bytes);
            at += bytes;
        }
        self.submit(Some(encoder.finish()));
        let mapped = Arc::new(OnceLock::new());
        let seen = Arc::clone(&mapped);
        buffer.map_async(MapMode::Read, ..bytes, move |done| drop(seen.set(done)));
        Ok(Part { buffer, bytes, pieces, mapped })
    }

    /// Waits for a part, and copies its numbers to the arrays of the caller. A wait that was cancelled leaves a buffer that is being
    /// mapped, which ends with it.
    fn receive(&self, part: Part<'_>, cancel: &dyn Fn() -> bool) -> Result<()> {
        let Part { buffer, bytes, pieces, mapped } = part;
        let failed = |why: String| Error::Device(format!("{} did not answer: {why}", self.adapter().name));
        self.count(What::Waits, 1);
        self.waited(|| mapped.get().is_some(), cancel)?;
        if let Some(Err(e)) = mapped.get() {
            return Err(failed(e.to_string()));
        }
        let view = buffer.get_mapped_range(..bytes).map_err(|e| failed(e.to_string()))?;
        let mut rest = &*view;
        for piece in pieces {
            let (own, behind) = rest.split_at(size_of_val(&*piece.to));
            bytes_mut(piece.to).copy_from_slice(own);
            rest = behind;
        }
        self.count(What::Downloaded, view.len());
        drop(view);
        buffer.unmap();
        self.downloads.give(buffer);
        Ok(())
    }

    /// A new buffer.
    fn buffer(&self, descriptor: &BufferDescriptor<'_>) -> Result<Buffer> {
        self.retried(|| Ok(self.device.create_buffer(descriptor)))
    }

    /// Runs an operation that allocates memory. If it fails, frees all caches, waits until the device has finished with them, and runs it once more.
    pub(super) fn retried<R>(&self, f: impl Fn() -> Result<R>) -> Result<R> {
        self.scoped(&f).or_else(|_| {
            self.free();
            self.wait(&|| false)?;
            self.scoped(&f)
        })
    }
}

/// Numbers that are downloaded: those of memory from a byte on.
struct Piece<'t> {
    memory: &'t Memory,
    first: u64,
    to: &'t mut [f32],
}

/// A part of a download on its way.
struct Part<'t> {
    buffer: Buffer,
    bytes: u64,
    pieces: Vec<Piece<'t>>,
    mapped: Arc<OnceLock<std::result::Result<(), BufferAsyncError>>>,
}

/// Arrays in parts of at most [`STAGING`] bytes; none for no numbers.
fn parts<'t>(to: &'t mut [(&Memory, &mut [f32])]) -> Vec<Vec<Piece<'t>>> {
    let (mut parts, mut free) = (Vec::new(), 0);
    for (memory, numbers) in to {
        let (mut first, mut rest) = (0, &mut **numbers);
        while !rest.is_empty() {
            if free == 0 {
                parts.push(Vec::new());
                free = STAGING / size_of::<f32>();
            }
            let (own, behind) = rest.split_at_mut(rest.len().min(free));
            (free, rest) = (free - own.len(), behind);
            let bytes = size_of_val(own) as u64;
            if let Some(part) = parts.last_mut() {
                part.push(Piece { memory, first, to: own });
            }
            first += bytes;
        }
    }
    parts
}

/// The bytes of numbers.
fn bytes_mut(numbers: &mut [f32]) -> &mut [u8] {
    // SAFETY: four bytes of any value are an f32.
    unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), size_of_val(numbers)) }
}
