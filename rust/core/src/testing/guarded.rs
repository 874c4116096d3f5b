//! An array that ends at an inaccessible page, so that an access past its end is fatal, and has canaries before it.

pub use place::Guarded;

use crate::scalar::{Real, Scalar};

impl<T: Scalar> Guarded<T> {
    /// An array of NaN, to be written.
    pub fn new(len: usize) -> Self {
        Self::of(&vec![T::real(T::Real::of(f64::NAN)); len])
    }
    pub fn take(self) -> Vec<T> {
        self.read().to_vec()
    }
}

#[cfg(all(unix, not(miri)))]
mod place {
    use crate::scalar::Scalar;

    /// No system has larger pages.
    const PAGE: usize = 1 << 16;

    pub struct Guarded<T: Scalar> {
        map: *mut u8,
        size: usize,
        data: *mut T,
        len: usize,
    }

    impl<T: Scalar> Guarded<T> {
        pub fn of(values: &[T]) -> Self {
            let bytes = size_of_val(values);
            let size = bytes.div_ceil(PAGE) * PAGE + PAGE;
            // SAFETY: a private anonymous mapping; its last page is made inaccessible, the array ends before it.
            unsafe {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                let map =
                    libc::mmap(std::ptr::null_mut(), size, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
                assert_ne!(map, libc::MAP_FAILED);
                let map = map.cast::<u8>();
                assert_eq!(libc::mprotect(map.add(size - PAGE).cast(), PAGE, libc::PROT_NONE), 0);
                let data = map.add(size - PAGE - bytes).cast::<T>();
                std::ptr::copy_nonoverlapping(values.as_ptr(), data, values.len());
                std::slice::from_raw_parts_mut(map, size - PAGE - bytes).fill(0xa5);
                Guarded { map, size, data, len: values.len() }
            }
        }
        pub fn inner(&mut self) -> &mut [T] {
            // SAFETY: the array lies within the mapping, and this is the only reference.
            unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
        }
        /// The array, after a check that nothing before it was written.
        pub fn read(&self) -> &[T] {
            let front = self.size - PAGE - self.len * size_of::<T>();
            // SAFETY: the canaries and the array lie within the mapping.
            unsafe {
                let canaries = std::slice::from_raw_parts(self.map, front);
                assert!(canaries.iter().all(|&x| x == 0xa5), "written outside");
                std::slice::from_raw_parts(self.data, self.len)
            }
        }
    }

    impl<T: Scalar> Drop for Guarded<T> {
        fn drop(&mut self) {
            // SAFETY: the mapping of `of`.
            unsafe { libc::munmap(self.map.cast(), self.size) };
        }
    }
}

/// Where pages cannot be protected; Miri sees every access past the end by itself.
#[cfg(any(not(unix), miri))]
mod place {
    use crate::scalar::Scalar;

    pub struct Guarded<T: Scalar>(Vec<T>);

    impl<T: Scalar> Guarded<T> {
        pub fn of(values: &[T]) -> Self {
            Guarded(values.to_vec())
        }
        pub fn inner(&mut self) -> &mut [T] {
            &mut self.0
        }
        pub fn read(&self) -> &[T] {
            &self.0
        }
    }
}
