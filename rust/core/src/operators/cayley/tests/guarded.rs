//! An array that ends at an inaccessible page, so that an access past its end is fatal, and has canaries before it.

pub use place::Guarded;

#[cfg(all(unix, not(miri)))]
mod place {
    use crate::scalar::Scalar;

    /// No system has larger pages.
    const PAGE: usize = 1 << 16;

    pub struct Guarded<T> {
        map: *mut u8,
        size: usize,
        data: *mut T,
        len: usize,
    }

    impl<T: Scalar> Guarded<T> {
        pub fn new(values: &[T]) -> Self {
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
        pub fn slice(&mut self) -> &mut [T] {
            // SAFETY: the array lies within the mapping; each test takes one reference at a time.
            unsafe { std::slice::from_raw_parts_mut(self.data, self.len) }
        }
        pub fn check(&self) {
            let front = self.size - PAGE - self.len * size_of::<T>();
            // SAFETY: the canaries lie within the mapping.
            assert!(unsafe { std::slice::from_raw_parts(self.map, front) }.iter().all(|&x| x == 0xa5));
        }
    }

    impl<T> Drop for Guarded<T> {
        fn drop(&mut self) {
            // SAFETY: the mapping of `new`.
            unsafe { libc::munmap(self.map.cast(), self.size) };
        }
    }
}

/// Where pages cannot be protected; Miri sees every access past the end by itself.
#[cfg(any(not(unix), miri))]
mod place {
    use crate::scalar::Scalar;

    pub struct Guarded<T>(Vec<T>);

    impl<T: Scalar> Guarded<T> {
        pub fn new(values: &[T]) -> Self {
            Guarded(values.to_vec())
        }
        pub fn slice(&mut self) -> &mut [T] {
            &mut self.0
        }
        pub fn check(&self) {}
    }
}
